import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { listing } from './repair-cluster.ts';

/** Returns the table with some functions replaced. */
export function tableWith(table: KeyValueTable, changed: Partial<KeyValueTable>): KeyValueTable {
  return { ...table, ...changed };
}

/** Returns a cluster whose list of Services fails after these Services. */
export function brokenList(services: readonly ServiceClaim[], error: Error): ClusterPort {
  return listing(async function* list() {
    yield* services;
    throw error;
  });
}
