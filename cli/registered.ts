import { pauseInForce } from '../lib/dispatch/due.ts';
import type { ClusterSpec } from '../lib/spec/cluster-spec.ts';
import {
  listClusters,
  type Pause,
  type RegisteredCluster,
  readCluster,
  readPauseOfAll,
} from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { type CliError, configurationError } from './errors.ts';
import { isClusterName, nearestName } from './spec/names.ts';
import type { ClusterStatus, FleetStatus } from './status/cluster-status.ts';
import type { StatusDetails } from './status/read-inputs.ts';
import { readStatus } from './status/read-status.ts';

/** @throws CliError, with the nearest name, if the cluster is not registered */
export async function registeredCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster> {
  const cluster = isClusterName(name) ? await readCluster(table, name) : undefined;
  if (cluster !== undefined) return cluster;
  throw await notRegistered(table, name);
}

export async function notRegistered(table: KeyValueTable, name: string): Promise<CliError> {
  const { clusters, unreadable } = await listClusters(table);
  const names = [...clusters.map(({ spec }) => spec.name), ...unreadable.map((one) => one.name)];
  const nearest = nearestName(name, names);
  const hint =
    names.length === 0
      ? 'No clusters are registered: use "kbctl cluster apply -f FILE".'
      : nearest === undefined
        ? `Registered clusters: ${namesOf(names)}.`
        : `Did you mean ${nearest}?`;
  return configurationError(`Cluster "${name}" not found. ${hint}`);
}

/**
 * Returns the end of an error about an unknown address: all addresses and host names of the cluster. It suggests no similar
 * address, because that belongs to another API server.
 */
export function listAddresses({ apiServers }: ClusterSpec, leased: readonly string[] = []): string {
  const named = apiServers.map((server) => ('address' in server ? server.address : server.host));
  return `it has ${[...new Set([...named, ...leased])].join(', ')}.`;
}

/** @throws CliError if the cluster is not registered */
export async function clusterStatusOf(cli: Cli, name: string, nowMs: number): Promise<ClusterStatus> {
  const { table, tableName } = await cli.openTable();
  const { clusters } = await readStatus(table, { nowMs, tableName, cluster: name, details: 'full' });
  if (clusters[0] === undefined) throw await notRegistered(table, name);
  return clusters[0];
}

export async function statusOfAll(cli: Cli, nowMs: number, details: StatusDetails): Promise<FleetStatus> {
  const { table, tableName } = await cli.openTable();
  return readStatus(table, { nowMs, tableName, details });
}

export function plainCluster({ spec, generation, rangesGeneration, paused, owner }: RegisteredCluster) {
  return { name: spec.name, generation, rangesGeneration, owner, paused, spec };
}

/** Returns the pause that applies to the cluster now: that of all clusters, or its own. */
export async function readPauseOf(cli: Cli, cluster: RegisteredCluster): Promise<Pause | undefined> {
  const { table } = await cli.openTable();
  return pauseInForce([await readPauseOfAll(table), cluster.paused], await cli.nowMs());
}

export function describePause({ untilMs, reason, by }: Pause): string {
  return `paused until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}

/** Warns if all clusters are paused, because the registration of a single cluster does not show this. */
export function warnOfPauseOfAll({ output }: Cli, all: Pause | undefined, nowMs: number): void {
  if (all === undefined || all.untilMs <= nowMs) return;
  output.say(`All clusters are ${describePause(all)}. Use "kbctl resume --all" to resume them.`);
}

const MOST_NAMES = 10;

export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
