import { pauseInForce } from '../lib/dispatch/due.ts';
import type { ClusterSpec } from '../lib/spec/cluster-spec.ts';
import { CLUSTER_NAME } from '../lib/spec/shapes.ts';
import {
  listClusters,
  type Pause,
  type RegisteredCluster,
  readCluster,
  readPauseOfAll,
} from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { isoTime } from '../lib/util/values.ts';
import type { Cli } from './cli.ts';
import { type CliError, configurationError } from './errors.ts';
import { nearestName } from './spec/names.ts';
import type { FleetStatus } from './status/cluster-status.ts';
import type { StatusDetails } from './status/read-inputs.ts';
import { readStatus } from './status/read-status.ts';

/** @throws CliError, with the nearest name, if the cluster is not registered */
export async function registeredCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster> {
  const cluster = CLUSTER_NAME.test(name) ? await readCluster(table, name) : undefined;
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

/** Returns the end of an error message: the known addresses. Suggests none of them, because each is of another API server. */
export function listAddresses({ apiServers }: ClusterSpec, leased: readonly string[] = []): string {
  const named = apiServers.map((server) => ('address' in server ? server.address : server.host));
  return `it has ${[...new Set([...named, ...leased])].join(', ')}.`;
}

/** Reads the status of all clusters, or of one. @throws CliError if that cluster is not registered */
export async function fleetStatus(cli: Cli, details: StatusDetails, cluster?: string): Promise<FleetStatus> {
  const { table, tableName, clock } = await cli.openTable();
  const fleet = await readStatus(table, { nowMs: clock.nowMs(), tableName, details, cluster });
  if (cluster !== undefined && fleet.clusters.length === 0) throw await notRegistered(table, cluster);
  return fleet;
}

export function plainCluster({ spec, generation, rangesGeneration, paused, owner }: RegisteredCluster) {
  return { name: spec.name, generation, rangesGeneration, owner, paused, spec };
}

/** Returns the pause that applies to the cluster now: the pause of all clusters, or the pause of only this cluster. */
export async function readPauseOf(cli: Cli, cluster: RegisteredCluster): Promise<Pause | undefined> {
  const { table, clock } = await cli.openTable();
  return pauseInForce([await readPauseOfAll(table), cluster.paused], clock.nowMs());
}

export function describePause({ untilMs, reason, by }: Pause): string {
  return `paused until ${isoTime(untilMs)} by ${by}: ${reason}`;
}

/** Warns if all clusters are paused, because the registration of a single cluster does not show that pause. */
export function warnOfPauseOfAll({ output }: Cli, all: Pause | undefined, nowMs: number): void {
  if (all === undefined || all.untilMs <= nowMs) return;
  output.say(`All clusters are ${describePause(all)}. Use "kbctl resume --all" to resume them.`);
}

const MOST_NAMES = 10;

export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
