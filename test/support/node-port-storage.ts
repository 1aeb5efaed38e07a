import type { Etcd } from './control-plane.ts';

/** What the repair of a stock API server writes at its start: without it node ports are refused. */
export async function initialiseNodePorts(etcd: Pick<Etcd, 'put'>): Promise<void> {
  const allocation = { apiVersion: 'v1', kind: 'RangeAllocation', metadata: {}, range: '30000-32767', data: '' };
  await etcd.put('/registry/ranges/servicenodeports', allocation);
}
