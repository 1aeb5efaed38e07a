import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { listing } from './repair-cluster.ts';

/** The table, with some of its calls answered otherwise. */
export function tableWith(table: KeyValueTable, changed: Partial<KeyValueTable>): KeyValueTable {
  return { ...table, ...changed };
}

/** A list of Services that breaks off after these. */
export function brokenList(services: readonly ServiceClaim[], error: Error): ClusterPort {
  return listing(async function* list() {
    yield* services;
    throw error;
  });
}
