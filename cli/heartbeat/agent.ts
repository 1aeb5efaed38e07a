import { setTimeout as sleep } from 'node:timers/promises';
import { type Heartbeat, heartbeat } from '../../lib/api-servers/heartbeat.ts';
import { deregisterAddress } from '../../lib/dispatch/deregistration.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { ServerClock } from '../../lib/table/server-clock.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import { configurationError, EXIT, type ExitCode, exitCodeOf } from '../errors.ts';
import { refuseSkew } from '../open-table.ts';
import { type AskReadyz, ownServer } from './own-server.ts';

export interface AgentOptions {
  readonly cluster: string;
  readonly address: string;
  readonly everyMs: number;
  readonly tableUntil: (signal: AbortSignal) => KeyValueTable;
  readonly clock: ServerClock;
  /** Absent: the API server is not asked. */
  readonly ask?: AskReadyz;
  readonly say: (line: string) => void;
}

/** What did not go well is tried again sooner than it would be due. */
const RETRY_MS = 1_000;
const SHORTEST_BEAT_MS = 2_000;

/** Keeps one lease until the signal ends it. @returns whether the lease was ever held. */
export async function keepLease(options: AgentOptions, ended: AbortSignal): Promise<boolean> {
  const tell = teller(options);
  let everHeld = false;
  while (!ended.aborted) {
    const startedAtMs = performance.now();
    const came = await beatOrTrouble(options, ended);
    if (ended.aborted) break;
    tell(came);
    const held = came.state === 'held';
    everHeld ||= held;
    const restMs = Math.max(0, startedAtMs + options.everyMs - performance.now());
    await sleep(held ? restMs : Math.min(RETRY_MS, options.everyMs), undefined, { signal: ended }).catch(
      () => undefined,
    );
  }
  return everHeld;
}

/** One refresh, and no more. @throws CliError when there is no lease to keep, or no clock to keep it by; TableError. */
export async function refreshOnce(options: AgentOptions, ended: AbortSignal): Promise<Heartbeat['state']> {
  const came = await beat(options, ended);
  options.say(`${options.address} ${sentenceOf(came)}`);
  return came.state;
}

async function beat(options: AgentOptions, ended: AbortSignal): Promise<Heartbeat> {
  const { cluster: name, address, everyMs, tableUntil, clock, ask } = options;
  const cluster = await readRegistered(options, ended);
  ownServer(cluster.spec, address, everyMs);
  const leaseMs = cluster.spec.endpoints.leaseSeconds * 1000;
  const signal = AbortSignal.any([ended, AbortSignal.timeout(Math.max(SHORTEST_BEAT_MS, leaseMs - everyMs))]);
  refuseSkew(clock);
  return heartbeat({
    table: tableUntil(signal),
    cluster: name,
    address,
    leaseMs,
    nowMs: clock.nowMs,
    ...(ask !== undefined && { ask: () => ask(signal) }),
  });
}

async function readRegistered({ cluster, tableUntil }: AgentOptions, ended: AbortSignal): Promise<RegisteredCluster> {
  const signal = AbortSignal.any([ended, AbortSignal.timeout(SHORTEST_BEAT_MS)]);
  const registered = await readCluster(tableUntil(signal), cluster);
  if (registered !== undefined) return registered;
  throw configurationError(`${cluster} is no longer registered: its leases are kept no more, and run out.`);
}

type Came = Heartbeat | { readonly state: 'trouble'; readonly error: TableError };

async function beatOrTrouble(options: AgentOptions, ended: AbortSignal): Promise<Came> {
  try {
    return await beat(options, ended);
  } catch (error) {
    if (error instanceof TableError) return { state: 'trouble', error };
    throw error;
  }
}

/** Says what is new: each state once, and the table's trouble once until it is well again. */
function teller({ address, say }: AgentOptions): (came: Came) => void {
  let told = '';
  let trouble = false;
  return (came) => {
    if (came.state === 'trouble') {
      if (!trouble) say(`The table does not answer as it should, and is tried again: ${came.error.message}`);
      trouble = true;
      return;
    }
    if (trouble) say('The table is well again.');
    trouble = false;
    if (came.state === 'lost' || came.state === told) return;
    told = came.state;
    say(`${address} ${sentenceOf(came)}`);
  };
}

function sentenceOf({ state, outcome, withdrawnUntilMs }: Heartbeat): string {
  const said = outcome === undefined ? '' : ` (its API server ${saying(outcome.detail)})`;
  switch (state) {
    case 'held':
      return `holds its lease${said}.`;
    case 'withdrawn': {
      const until = withdrawnUntilMs === undefined ? '' : ` until ${new Date(withdrawnUntilMs).toISOString()}`;
      return `is withdrawn${until}: its lease is not refreshed before, unless its API server goes down and comes back.`;
    }
    case 'down':
      return `is not refreshed, and its lease runs out${said}.`;
    case 'lost':
      return 'was not refreshed: somebody else wrote its lease at the same time.';
  }
}

function saying(detail: string): string {
  return detail.startsWith('answered') ? detail : `gave ${detail}`;
}

export interface OwnEnd {
  readonly environment: Environment;
  readonly cluster: string;
  readonly address: string;
  readonly say: (line: string) => void;
}

/** Twice the interval of the endpoints loop, as the original waits at its end. */
const LONGEST_MS = 20_000;

/** What an API server does at its end: its lease goes, and with it its endpoints. The next start brings it back at once. */
export async function deregisterSelf({ environment, cluster, address, say }: OwnEnd): Promise<ExitCode> {
  say(`Ending: ${address} is taken out of the endpoints. Ctrl-C once more ends at once.`);
  const { signal, cancel } = environment.startDeadline(LONGEST_MS);
  const invocation = {
    environment,
    telemetry: environment.telemetry({ loop: 'deregister' }),
    remainingMs: () => LONGEST_MS,
  };
  const asked = { cluster, address, goingDown: true };
  try {
    const result = await deregisterAddress(asked, invocation, { signal, wouldWrite: () => {} });
    if (result.outcome !== 'deregistered') {
      const stays = 'its lease runs out, and the endpoints stay as they are while nobody else is live';
      say(
        result.outcome === 'refused' && result.reason === 'lastLiveAddress'
          ? `${address} is the last live address: ${stays}.`
          : result.message,
      );
      return EXIT.fine;
    }
    say(result.stillPublished ? leftToLoop(address, result.error) : `${address} is out of the endpoints.`);
    return EXIT.fine;
  } catch (error) {
    say(`${address} could not be taken out, and its lease runs out: ${describeError(error).message}`);
    return exitCodeOf(error) ?? EXIT.findings;
  } finally {
    cancel();
  }
}

function leftToLoop(address: string, error: unknown): string {
  const why = error === undefined ? '' : ` (${describeError(error).message})`;
  return `${address} is withdrawn, and still in the endpoints${why}: the kubernetes-service loop takes it out at its next tick.`;
}
