import type { Transport } from '../../lib/kubernetes/transport.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { saveRange } from '../../lib/table/ranges.ts';
import { newIdentity } from '../../local/stand-in/identity.ts';
import { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { tableAllocation } from '../../local/stand-in/table-allocation.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { KINDS } from './kubernetes-service-objects.ts';
import { memoryTable } from './memory-table.ts';
import { seededPick, storedRange } from './ranges.ts';
import { repairedAt } from './run-records.ts';

/** The identity by which stand-ins recognise their callers. */
export const IDENTITY = newIdentity('test');

export interface StandInSetting {
  readonly cidr?: string;
  /** The table. Stand-ins over one table act like API servers over one etcd, except that each keeps its own objects. */
  readonly table?: KeyValueTable;
}

const NODE_PORTS = '30000-32767';

/** Returns a stand-in that has the namespaces and the ServiceCIDR of a running cluster, and ranges that a pass has saved. */
export async function readyStandIn({
  cidr = '10.0.0.0/24',
  table = memoryTable(),
}: StandInSetting = {}): Promise<StandInApiServer> {
  await registerCluster(table, aClusterSpec({ name: 'main', allocator: 'table', serviceClusterIPRanges: [cidr] }));
  for (const [key, range] of [
    [RANGE_KEYS.primary, cidr],
    [RANGE_KEYS.nodePorts, NODE_PORTS],
  ] as const) {
    await saveRange(table, 'main', key, storedRange({ range, data: new Uint8Array(0) }), undefined);
  }
  await repairedAt(table, Date.now());
  const allocation = tableAllocation(table, 'main', seededPick(1), Date.now);
  const standIn = new StandInApiServer(allocation, () => Date.UTC(2026, 0, 2));
  const objects = [
    ['/api/v1/namespaces', { metadata: { name: 'default' } }],
    ['/apis/networking.k8s.io/v1/servicecidrs', { metadata: { name: 'kubernetes' }, spec: { cidrs: [cidr] } }],
  ] as const;
  for (const [path, body] of objects) {
    await standIn.handle({ method: 'POST', path, headers: {}, body: JSON.stringify(body) });
  }
  return standIn;
}

/** Returns a transport that calls the stand-in without a socket. */
export function transportTo(standIn: StandInApiServer): Transport {
  return async (request, signal) => {
    signal.throwIfAborted();
    const { status, headers, body } = await standIn.handle(request);
    return { status, headers, body: [new TextEncoder().encode(body)] };
  };
}

export async function objectsIn(standIn: StandInApiServer): Promise<unknown> {
  const replies = await Promise.all(KINDS.map((path) => standIn.handle({ method: 'GET', path, headers: {} })));
  return replies.map(({ body }) => JSON.parse(body).items);
}
