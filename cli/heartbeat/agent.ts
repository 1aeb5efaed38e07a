import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import { deregisterNow } from '../../lib/deregister/deregistration.ts';
import { withdrawnUntil } from '../../lib/leases/lease.ts';
import { newLease, nextLease } from '../../lib/leases/lease-states.ts';
import { type ProbeOutcome, probeOutcome } from '../../lib/leases/probe-outcome.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { type KeyValueTable, type Store, TableError } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../lib/table/leases.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { anyPartOf, upperHalfOf } from '../../lib/util/back-off.ts';
import { isoTime } from '../../lib/util/values.ts';
import { type Cli, refuseSkew } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, exitCodeOf } from '../errors.ts';
import { type AskReadyz, ownServer } from './own-server.ts';

export interface HeartbeatRequest {
  readonly table: KeyValueTable;
  readonly cluster: string;
  readonly address: string;
  readonly leaseMs: number;
  readonly nowMs: () => number;
  readonly probe: () => Promise<ProbeReply>;
}

/** `down`: the probe did not refresh the lease. `lost`: another writer wrote the lease at the same time. */
export type Heartbeat = { readonly outcome: ProbeOutcome } & (
  | { readonly state: 'active' | 'down' | 'lost' }
  | { readonly state: 'withdrawn'; readonly withdrawnUntilMs: number }
);

/** Refreshes a lease from the API server's own host, unless another writer changes the lease during the probe. */
export async function heartbeat(request: HeartbeatRequest): Promise<Heartbeat> {
  const { table, cluster, address, leaseMs, nowMs, probe } = request;
  const stored = await readLeases(table, cluster);
  const outcome = probeOutcome(await probe());
  const before = leaseOf(stored, address) ?? newLease(address);
  const atMs = nowMs();
  const answer = outcome.verdict;
  // Only ticks count misses. An agent needs no count: silence on the server's own host proves that the server is down.
  const event = { source: 'agent', leaseMs, provesEnd: answer === 'silence' } as const;
  const after = answer === 'unknown' ? before : nextLease(before, { answer, ...event }, atMs);
  const { written } = await changeLeases(table, cluster, stored, new Map(after === before ? [] : [[address, after]]));
  if (after !== before && !written.has(address)) return { state: 'lost', outcome };
  const withdrawnUntilMs = withdrawnUntil(after, atMs);
  if (withdrawnUntilMs !== undefined) return { state: 'withdrawn', outcome, withdrawnUntilMs };
  return { state: after.generation > before.generation ? 'active' : 'down', outcome };
}

export interface AgentOptions {
  readonly cluster: string;
  readonly address: string;
  readonly everyMs: number;
  readonly tableUntil: Store['table'];
  readonly clock: Store['clock'];
  readonly sleep: Cli['sleep'];
  readonly ask: AskReadyz;
  readonly say: (line: string) => void;
}

/** The longest wait after a failed refresh. */
const RETRY_MS = 1_000;
const SHORTEST_REFRESH_MS = 2_000;

/** Returns the wait after a refresh. The first wait is random, so that agents that started together write at different times. */
export function restAfter(
  { isRefreshed, isFirst }: { readonly isRefreshed: boolean; readonly isFirst: boolean },
  everyMs: number,
  random: () => number,
): number {
  if (!isRefreshed) return upperHalfOf(Math.min(RETRY_MS, everyMs), random);
  return isFirst ? anyPartOf(everyMs, random) : everyMs;
}

/** Refreshes one lease again and again until the signal aborts. Returns whether any refresh succeeded. */
export async function keepLease(options: AgentOptions, ended: AbortSignal): Promise<boolean> {
  const report = stateReporter(options);
  let everRefreshed = false;
  while (!ended.aborted) {
    const result = await refresh(options, ended).catch(unlessOfTable);
    if (ended.aborted) break;
    report(result);
    const isRefreshed = !(result instanceof TableError) && result.state === 'active';
    const restMs = restAfter({ isRefreshed, isFirst: !everRefreshed }, options.everyMs, Math.random);
    everRefreshed ||= isRefreshed;
    await options.sleep(restMs, ended).catch(() => undefined);
  }
  return everRefreshed;
}

export async function refreshOnce(options: AgentOptions, ended: AbortSignal): Promise<Heartbeat['state']> {
  const result = await refresh(options, ended);
  options.say(`${options.address} ${describeHeartbeat(result)}`);
  return result.state;
}

async function refresh(options: AgentOptions, ended: AbortSignal): Promise<Heartbeat> {
  const { cluster: name, address, everyMs, tableUntil, clock, ask } = options;
  const within = (ms: number) => AbortSignal.any([ended, AbortSignal.timeout(ms)]);
  const cluster = await readCluster(tableUntil(within(SHORTEST_REFRESH_MS)), name);
  if (cluster === undefined) throw configurationError(`${name} is no longer registered: its leases expire.`);
  const server = ownServer(cluster.spec, address, everyMs);
  const leaseMs = cluster.spec.endpoints.leaseSeconds * 1000;
  const signal = within(Math.max(SHORTEST_REFRESH_MS, leaseMs - everyMs));
  refuseSkew(clock);
  return heartbeat({
    table: tableUntil(signal),
    cluster: name,
    address,
    leaseMs,
    nowMs: clock.nowMs,
    probe: () => ask(cluster.spec, server, signal),
  });
}

function unlessOfTable(error: unknown): TableError {
  if (error instanceof TableError) return error;
  throw error;
}

/** Returns a function that prints each new state of the lease except `lost`, and the start and end of table outages. */
function stateReporter({ address, say }: AgentOptions): (result: Heartbeat | TableError) => void {
  let reported = '';
  return (result) => {
    const state = result instanceof TableError ? 'tableFails' : result.state;
    if (state === 'lost' || state === reported) return;
    if (reported === 'tableFails') say('The table answers again.');
    reported = state;
    if (result instanceof TableError) say(`The table does not answer, retrying: ${result.message}`);
    else say(`${address} ${describeHeartbeat(result)}`);
  };
}

function describeHeartbeat(result: Heartbeat): string {
  const { detail } = result.outcome;
  const reply = ` (its API server ${detail.startsWith('answered') ? detail : `gave ${detail}`})`;
  switch (result.state) {
    case 'active':
      return `has a valid lease${reply}.`;
    case 'withdrawn':
      return `is withdrawn until ${isoTime(result.withdrawnUntilMs)}: its lease is not refreshed before, unless its API server restarts.`;
    case 'down':
      return `is not refreshed, and its lease expires${reply}.`;
    case 'lost':
      return 'was not refreshed: another writer changed its lease at the same time.';
  }
}

/** Withdraws the address, and removes it from the endpoints. The next heartbeat of a ready API server ends the withdrawal. */
export async function deregisterSelf(
  { cluster, address, say }: Pick<AgentOptions, 'cluster' | 'address' | 'say'>,
  environment: Environment,
): Promise<ExitCode> {
  say(`Ending: removing ${address} from the endpoints. Press Ctrl-C again to end at once.`);
  try {
    const request = { cluster, address, goingDown: true };
    const result = await deregisterNow(request, environment, { wouldWrite: () => {} });
    if (result.outcome === 'refused' && result.reason === 'lastLiveAddress') {
      say(`${address} is the last live address: its lease expires, and it stays published until another is live.`);
    } else if (result.outcome !== 'deregistered') {
      say(result.message);
    } else if (result.stillPublished) {
      const reason = result.error === undefined ? '' : ` (${result.error.message})`;
      const removal = 'the next tick of kubernetes-service removes it, but none in mode observe or during a pause';
      say(`${address} is withdrawn, and still published${reason}: ${removal}.`);
    } else {
      say(`${address} is removed from the endpoints.`);
    }
    return EXIT.fine;
  } catch (error) {
    say(`${address} could not be removed, and its lease expires: ${describeError(error).message}`);
    return exitCodeOf(error) ?? EXIT.findings;
  }
}
