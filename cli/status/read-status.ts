import { eachOf } from '../../lib/cluster/async.ts';
import { pauseInForce } from '../../lib/dispatch/due.ts';
import { ALL_CLUSTERS, CLUSTERS, clustersIn, listClusters } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { ClusterStatus, FleetStatus } from './cluster-status.ts';
import { AT_A_TIME, readInputs, type StatusDetails } from './read-inputs.ts';
import { workOutStatus } from './work-out-status.ts';

/** Returns `undefined` if the cluster is not registered. @throws TableError */
export async function readClusterStatus(
  table: KeyValueTable,
  name: string,
  nowMs: number,
): Promise<ClusterStatus | undefined> {
  if (name === '' || name === ALL_CLUSTERS) return undefined;
  const items = await Promise.all([ALL_CLUSTERS, name].map((key) => table.get(CLUSTERS, key)));
  const { clusters, unreadable, pausedAll } = clustersIn(items.filter((item) => item !== undefined));
  if (unreadable[0] !== undefined) throw unreadable[0].error;
  const [cluster] = clusters;
  return cluster && workOutStatus(await readInputs(table, cluster, pausedAll, 'full'), nowMs);
}

/** A cluster that cannot be read does not hide the others. @throws TableError */
export async function readFleetStatus(
  table: KeyValueTable,
  tableName: string,
  nowMs: number,
  details: StatusDetails,
): Promise<FleetStatus> {
  const list = await listClusters(table);
  const clusters = await eachOf(list.clusters, AT_A_TIME, async (cluster) =>
    workOutStatus(await readInputs(table, cluster, list.pausedAll, details), nowMs),
  );
  const pausedAll = pauseInForce([list.pausedAll], nowMs);
  return {
    atMs: nowMs,
    table: tableName,
    ...(pausedAll && { pausedAll }),
    clusters: [
      ...clusters.filter(({ health }) => health === 'unhealthy'),
      ...clusters.filter(({ health }) => health !== 'unhealthy'),
    ],
    unreadable: list.unreadable.map(({ name, error }) => ({ name, message: error.message })),
  };
}
