import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { Etcd } from './control-plane.ts';
import { IPV4_LABELS } from './stock-objects.ts';

const maxOperations = 128;

/**
 * Returns a client of etcd over the HTTP JSON gateway on its client port. Objects are stored as JSON, which API servers can
 * read.
 * @param url such as `http://127.0.0.1:2379`
 */
export function etcdClient(url: string) {
  const call = async (method: string, body: object): Promise<Reply> => {
    const response = await fetch(`${url}/v3/kv/${method}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd answered ${response.status} to ${method}: ${await response.text()}`);
    return (await response.json()) as Reply;
  };
  return {
    async put(key: string, value: object) {
      await call('put', putRequest(key, value));
    },
    /** Returns the value of a key, or `undefined` if there is none. API servers write protobuf by default. */
    async get(key: string): Promise<Buffer | undefined> {
      const { kvs } = await call('range', { key: base64(key) });
      return kvs?.[0] && Buffer.from(kvs[0].value, 'base64');
    },
    async delete(key: string) {
      await call('deleterange', { key: base64(key) });
    },
    /** Stores Services by name without any validation. The next list of an API server contains all of them. */
    async putServices(services: readonly StoredService[]) {
      const operations = services.map((service) => ({ requestPut: putRequest(serviceKey(service), service) }));
      // An API server considers its cache fresh at the first object of a transaction. The last object has a transaction of its
      // own, so that a later list contains all objects.
      const last = operations.splice(-1);
      for (let start = 0; start < operations.length; start += maxOperations) {
        await call('txn', { success: operations.slice(start, start + maxOperations) });
      }
      await call('txn', { success: last });
    },
  };
}

/** The part of the gateway's answers that this client reads. */
interface Reply {
  readonly kvs?: readonly { readonly value: string }[];
}

function putRequest(key: string, value: object) {
  return { key: base64(key), value: base64(JSON.stringify(value)) };
}

function serviceKey({ metadata }: KubernetesObject): string {
  return `/registry/services/specs/${metadata.namespace}/${metadata.name}`;
}

function base64(value: string): string {
  return Buffer.from(value).toString('base64');
}

/** Writes an empty allocation, as the repair of a stock API server does at its start. Without it, node ports are refused. */
export async function initialiseNodePorts(etcd: Pick<Etcd, 'put'>): Promise<void> {
  const allocation = { apiVersion: 'v1', kind: 'RangeAllocation', metadata: {}, range: '30000-32767', data: '' };
  await etcd.put('/registry/ranges/servicenodeports', allocation);
}

export interface StoredService extends KubernetesObject {
  readonly spec: object;
}

/** Returns the IPAddress of an IPv4 address as etcd stores it. `metadata` replaces these fields of the metadata. */
export function storedIPAddress(name: string, parentRef: object, metadata: object = {}): KubernetesObject {
  const usual = { uid: `uid-of-${name}`, creationTimestamp: '2026-01-01T00:00:00Z', labels: IPV4_LABELS };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata: { name, ...usual, ...metadata } };
  return { ...object, ...{ spec: { parentRef: { group: '', resource: 'services', ...parentRef } } } };
}

/** Returns a Service as etcd stores it, with a spec that no API server has checked. */
export function storedService(namespace: string, name: string, spec: object): StoredService {
  const uid = `uid-of-${namespace}-${name}`;
  const metadata = { namespace, name, uid, creationTimestamp: '2026-01-01T00:00:00Z' };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec };
}
