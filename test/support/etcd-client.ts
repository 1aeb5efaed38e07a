import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { Etcd } from './control-plane.ts';

/** etcd's default of `--max-txn-ops`. */
const maxOperations = 128;

/**
 * etcd over the HTTP JSON gateway on its client port. Values that are objects are stored as JSON, which API servers read.
 * @param url `http://127.0.0.1:2379`
 */
export function etcdClient(url: string) {
  const call = async (method: string, body: object): Promise<Reply> => {
    const response = await fetch(`${url}/v3/kv/${method}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd answered ${response.status} to ${method}: ${await response.text()}`);
    return (await response.json()) as Reply;
  };
  return {
    async put(key: string, value: object | string | Uint8Array) {
      await call('put', putRequest(key, value));
    },
    /** Undefined when there is no such key. What API servers wrote is protobuf unless they were told otherwise. */
    async get(key: string): Promise<Buffer | undefined> {
      const { kvs } = await call('range', { key: base64(key) });
      return kvs?.[0] && Buffer.from(kvs[0].value, 'base64');
    },
    /** Whether the key was there. */
    async delete(key: string) {
      const { deleted } = await call('deleterange', { key: base64(key) });
      return deleted === '1';
    },
    /** Stores Services past all validation, each under its name. An API server's next list has them all. */
    async putServices(services: readonly StoredService[]) {
      const operations = services.map((service) => ({ requestPut: putRequest(serviceKey(service), service) }));
      // An API server takes its cache for fresh at the first object of a transaction: the last one comes alone, so that
      // a list made after this sees all of them.
      const last = operations.splice(-1);
      for (let start = 0; start < operations.length; start += maxOperations) {
        await call('txn', { success: operations.slice(start, start + maxOperations) });
      }
      await call('txn', { success: last });
    },
  };
}

/** The fields of the gateway's answers that are read here. */
interface Reply {
  readonly kvs?: readonly { readonly value: string }[];
  readonly deleted?: string;
}

function putRequest(key: string, value: object | string | Uint8Array) {
  const isBytes = typeof value === 'string' || value instanceof Uint8Array;
  return { key: base64(key), value: base64(isBytes ? value : JSON.stringify(value)) };
}

function serviceKey({ metadata }: KubernetesObject): string {
  return `/registry/services/specs/${metadata.namespace}/${metadata.name}`;
}

function base64(value: string | Uint8Array): string {
  return Buffer.from(value).toString('base64');
}

/** What the repair of a stock API server writes at its start: without it node ports are refused. */
export async function initialiseNodePorts(etcd: Pick<Etcd, 'put'>): Promise<void> {
  const allocation = { apiVersion: 'v1', kind: 'RangeAllocation', metadata: {}, range: '30000-32767', data: '' };
  await etcd.put('/registry/ranges/servicenodeports', allocation);
}

export interface StoredService extends KubernetesObject {
  readonly spec: object;
}

/** A Service as etcd holds it, whatever an API server would say of its spec. */
export function storedService(namespace: string, name: string, spec: object): StoredService {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, uid: `uid-of-${namespace}-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec,
  };
}
