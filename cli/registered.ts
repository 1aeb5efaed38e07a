import { isClusterName } from '../lib/cluster/name-rules.ts';
import { nearestName } from '../lib/cluster/nearest-name.ts';
import { listClusters, type RegisteredCluster, readCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { type CliError, configurationError } from './errors.ts';
import { namesOf } from './names-of.ts';

/** @throws CliError when no cluster of that name is registered, with the nearest name that is. */
export async function registeredCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster> {
  const cluster = isClusterName(name) ? await readCluster(table, name) : undefined;
  if (cluster !== undefined) return cluster;
  throw await notRegistered(table, name);
}

export async function notRegistered(table: KeyValueTable, name: string): Promise<CliError> {
  const { clusters, unreadable } = await listClusters(table);
  const names = [...clusters.map(({ spec }) => spec.name), ...unreadable.map((one) => one.name)];
  const nearest = nearestName(name, names);
  const known = names.length === 0 ? 'none is: register one with "kbctl cluster apply -f FILE"' : namesOf(names);
  const next = nearest === undefined ? `registered: ${known}` : `did you mean ${nearest}?`;
  return configurationError(`No cluster of the name ${name} is registered; ${next}`);
}
