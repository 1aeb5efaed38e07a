import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { nearestName } from '../lib/cluster/values.ts';
import { isClusterName } from '../lib/spec/names.ts';
import type { ClusterStatus, FleetStatus } from '../lib/status/cluster-status.ts';
import type { StatusDetails } from '../lib/status/read-inputs.ts';
import { readClusterStatus, readFleetStatus } from '../lib/status/read-status.ts';
import { listClusters, type Pause, type RegisteredCluster, readCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { type CliError, configurationError } from './errors.ts';
import type { Plain } from './output.ts';

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

/** Returns the addresses that there are. The nearest one is not suggested: it is another API server, and alive. */
export function knownInstead({ apiServers }: ClusterSpec, leased: readonly string[] = []): string {
  const named = apiServers.map((server) => ('address' in server ? server.address : server.host));
  return `it has ${[...new Set([...named, ...leased])].join(', ')}.`;
}

/** How one cluster is. @throws CliError when none is registered by that name. */
export async function statusOf(cli: Cli, name: string, nowMs: number): Promise<ClusterStatus> {
  const { table } = await cli.openTable();
  const status = await readClusterStatus(table, name, nowMs);
  if (status === undefined) throw await notRegistered(table, name);
  return status;
}

/** How all clusters are, with progress on a terminal. */
export async function statusOfAll(cli: Cli, nowMs: number, details: StatusDetails = 'full'): Promise<FleetStatus> {
  const { table, tableName } = await cli.openTable();
  const progress = cli.progress('reading clusters');
  try {
    return await readFleetStatus(table, tableName, nowMs, {
      details,
      onProgress: (done, total) => progress.update(`read ${done} of ${total} clusters`),
    });
  } finally {
    progress.end();
  }
}

/** Whose a cluster is that no stack's passes have made their own. */
export const NO_STACK_YET = 'no stack yet';

/** A registration as `-o json` has it. */
export function plainCluster({ spec, generation, rangesGeneration, paused, owner }: RegisteredCluster) {
  return {
    name: spec.name,
    generation,
    rangesGeneration,
    ...(owner !== undefined && { owner: { stack: owner.stack, packaged: owner.packaged !== undefined } }),
    ...(paused !== undefined && { paused: plainPause(paused) }),
    // Data as it is in the table: a spec holds nothing that JSON does not.
    spec: JSON.parse(JSON.stringify(spec)) as Plain,
  };
}

export function plainPause({ untilMs, reason, by }: Pause) {
  return { until: new Date(untilMs).toISOString(), reason, by };
}

export function pausedWords({ untilMs, reason, by }: Pause): string {
  return `paused until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}

/** The hold on all holds a cluster whatever is said of it alone: wherever one is shown, it is told. */
export function tellPauseOfAll({ output }: Cli, all: Pause | undefined, nowMs: number): void {
  if (all === undefined || all.untilMs <= nowMs) return;
  output.say(`All clusters are ${pausedWords(all)}. "kbctl resume --all" ends that.`);
}

const MOST_NAMES = 10;

/** The first of them, and how many more there are. */
export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
