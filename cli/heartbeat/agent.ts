import { deregisterNow } from '../../lib/deregister/deregistration.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { type Store, TableError } from '../../lib/table/key-value-table.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { anyPartOf, upperHalfOf } from '../../lib/util/back-off.ts';
import { type Cli, refuseSkew } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, exitCodeOf } from '../errors.ts';
import { type Heartbeat, heartbeat } from './heartbeat.ts';
import { type AskReadyz, ownServer } from './own-server.ts';

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

interface EndedRefresh {
  readonly isRefreshed: boolean;
  readonly isFirst: boolean;
  readonly everyMs: number;
}

/**
 * Returns the wait after a refresh. The wait after the first success is a random part of the interval, because agents that
 * started together would otherwise write the same item at the same times.
 */
export function restAfter({ isRefreshed, isFirst, everyMs }: EndedRefresh, random: () => number): number {
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
    const restMs = restAfter({ isRefreshed, isFirst: !everRefreshed, everyMs: options.everyMs }, Math.random);
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
  const cluster = await readRegistered(options, ended);
  const server = ownServer(cluster.spec, address, everyMs);
  const leaseMs = cluster.spec.endpoints.leaseSeconds * 1000;
  const signal = AbortSignal.any([ended, AbortSignal.timeout(Math.max(SHORTEST_REFRESH_MS, leaseMs - everyMs))]);
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

async function readRegistered({ cluster, tableUntil }: AgentOptions, ended: AbortSignal): Promise<RegisteredCluster> {
  const signal = AbortSignal.any([ended, AbortSignal.timeout(SHORTEST_REFRESH_MS)]);
  const registered = await readCluster(tableUntil(signal), cluster);
  if (registered !== undefined) return registered;
  throw configurationError(`${cluster} is no longer registered: its leases expire.`);
}

function unlessOfTable(error: unknown): TableError {
  if (error instanceof TableError) return error;
  throw error;
}

/** Returns a function that prints each new state of the lease, except `lost`, and when the table stops or starts to answer. */
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

function describeHeartbeat({ state, outcome, withdrawnUntilMs }: Heartbeat): string {
  const { detail } = outcome;
  const reply = ` (its API server ${detail.startsWith('answered') ? detail : `gave ${detail}`})`;
  switch (state) {
    case 'active':
      return `has a valid lease${reply}.`;
    case 'withdrawn': {
      const until = withdrawnUntilMs === undefined ? '' : ` until ${new Date(withdrawnUntilMs).toISOString()}`;
      return `is withdrawn${until}: its lease is not refreshed before, unless its API server restarts.`;
    }
    case 'down':
      return `is not refreshed, and its lease expires${reply}.`;
    case 'lost':
      return 'was not refreshed: another writer changed its lease at the same time.';
  }
}

export interface DeregisterSelfOptions extends Pick<AgentOptions, 'cluster' | 'address' | 'say'> {
  readonly environment: Environment;
}

/** Withdraws the address, and removes it from the endpoints. The next heartbeat of a ready API server ends the withdrawal. */
export async function deregisterSelf(options: DeregisterSelfOptions): Promise<ExitCode> {
  const { environment, cluster, address, say } = options;
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
      say(
        `${address} is withdrawn, and still published${reason}: the next tick of kubernetes-service removes it, but none in mode observe or during a pause.`,
      );
    } else {
      say(`${address} is removed from the endpoints.`);
    }
    return EXIT.fine;
  } catch (error) {
    say(`${address} could not be removed, and its lease expires: ${describeError(error).message}`);
    return exitCodeOf(error) ?? EXIT.findings;
  }
}
