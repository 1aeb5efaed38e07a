import { pauseInForce } from '../../lib/dispatch/due.ts';
import { ALL_CLUSTERS, CLUSTERS, type ClusterList, clustersIn, listClusters } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { eachOf } from '../../lib/util/async.ts';
import { defined } from '../../lib/util/values.ts';
import { compareNames } from '../spec/names.ts';
import { type FleetStatus, HEALTHS } from './cluster-status.ts';
import { AT_A_TIME, readInputs, type StatusDetails } from './read-inputs.ts';
import { workOutStatus } from './work-out-status.ts';

export interface StatusRequest {
  readonly nowMs: number;
  readonly tableName: string;
  /** The only cluster to read. Default: all clusters. */
  readonly cluster?: string | undefined;
  readonly details: StatusDetails;
}

/**
 * Reads the status of all clusters, or of one cluster. The status is empty if that cluster is not registered. If all
 * clusters are read, a cluster that cannot be read does not hide the others.
 * @throws TableError
 */
export async function readStatus(
  table: KeyValueTable,
  { cluster: only, ...request }: StatusRequest,
): Promise<FleetStatus> {
  return statusOfList(table, only === undefined ? await listClusters(table) : await listOne(table, only), request);
}

/** Reads the status of the clusters of a list. @throws TableError */
export async function statusOfList(
  table: KeyValueTable,
  list: Pick<ClusterList, 'clusters' | 'unreadable' | 'pausedAll'>,
  { nowMs, tableName, details }: Omit<StatusRequest, 'cluster'>,
): Promise<FleetStatus> {
  const clusters = await eachOf(list.clusters, AT_A_TIME, async (cluster) =>
    workOutStatus(await readInputs(table, cluster, list.pausedAll, details), nowMs),
  );
  const pausedAll = pauseInForce([list.pausedAll], nowMs);
  return {
    atMs: nowMs,
    table: tableName,
    ...defined({ pausedAll }),
    clusters: clusters.toSorted(
      (one, other) => HEALTHS.indexOf(one.health) - HEALTHS.indexOf(other.health) || compareNames(one.name, other.name),
    ),
    unreadable: list.unreadable.map(({ name, error }) => ({ name, message: error.message })),
  };
}

async function listOne(table: KeyValueTable, name: string): Promise<ClusterList> {
  const keys = name === '' || name === ALL_CLUSTERS ? [] : [ALL_CLUSTERS, name];
  const items = await Promise.all(keys.map((key) => table.get(CLUSTERS, key)));
  const list = clustersIn(items.filter((item) => item !== undefined));
  if (list.unreadable[0] !== undefined) throw list.unreadable[0].error;
  return list;
}
