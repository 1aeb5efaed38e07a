import { setTimeout as sleep } from 'node:timers/promises';
import { type Heartbeat, heartbeat } from '../../lib/api-servers/heartbeat.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { ServerClock } from '../../lib/table/server-clock.ts';
import { configurationError } from '../errors.ts';
import { refuseSkew } from '../skew.ts';
import { ownServer } from './own-server.ts';
import type { AskReadyz } from './readyz.ts';

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
