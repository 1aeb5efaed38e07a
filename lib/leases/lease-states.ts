import { defined } from '../util/values.ts';
import { isWithdrawn, type Lease, withdrawnUntil } from './lease.ts';

/**
 * The state table of a lease: the step for each state and each answer of the server. Passes apply the table to the
 * addresses that they probed, and an agent applies it to its own API server. `leased` is active until it expires. A
 * withdrawal (`withdrawn`) may begin in any state; `readmitted` is a withdrawal whose time has ended.
 */
const NEXT: Readonly<Record<StateNow, Readonly<Record<ServerAnswer['answer'], Step>>>> = {
  unknown: { ready: refresh, alive: refresh, shuttingDown: keep, error: keep, silence: keep, late: keep },
  leased: { ready: refresh, alive: refresh, shuttingDown: drop, error: miss, silence: miss, late },
  shuttingDown: { ready: refresh, alive: keep, shuttingDown: drop, error: miss, silence: end, late },
  withdrawn: { ready: keep, alive: keep, shuttingDown: seeDown, error: seeDown, silence: seeEnd, late: keep },
  seenDown: { ready: refresh, alive: keep, shuttingDown: keep, error: keep, silence: keep, late: keep },
  readmitted: { ready: refresh, alive: refresh, shuttingDown: drop, error: miss, silence: miss, late },
};

type StateNow = Lease['state'] | 'unknown' | 'seenDown' | 'readmitted';
type Step = (lease: Lease, answer: ServerAnswer, nowMs: number) => Lease;

export interface ServerAnswer {
  /** `alive`: the server answered 401, 403 or 429. `late`: this process was too busy to receive the answer in time. */
  readonly answer: 'ready' | 'alive' | 'shuttingDown' | 'error' | 'silence' | 'late';
  readonly source: Lease['source'];
  readonly leaseMs: number;
  readonly host?: string;
  /** The detail of the probe. If absent, a refresh removes the last detail, and other answers keep it. */
  readonly lastProbe?: string;
  /** True if silence proves that the process of the server has ended. */
  readonly provesEnd: boolean;
  /** The limits for the time between two misses. Absent if the answer cannot count as a miss. */
  readonly miss?: MissSpacing;
  /** A late answer counts as silence if it comes at least this long after the first late answer since the last refresh. */
  readonly lateAfterMs?: number;
}

interface MissSpacing {
  readonly shortestMs: number;
  readonly longestMs: number;
}

/** An address is removed after this many consecutive misses, if the last miss came after the lease expired. */
const MISSES_TO_GO = 2;

export function newLease(address: string): Lease {
  return { address, generation: 0, source: 'probe', expiresAtMs: 0, misses: 0, state: 'leased' };
}

/** Returns the lease after the answer. Returns the same object if nothing changes. */
export function nextLease(lease: Lease, answer: ServerAnswer, nowMs: number): Lease {
  return NEXT[stateNow(lease, nowMs)][answer.answer](lease, answer, nowMs);
}

function stateNow(lease: Lease, nowMs: number): StateNow {
  if (lease.state === 'leased' && lease.generation === 0) return 'unknown';
  if (lease.state !== 'withdrawn') return lease.state;
  if (!isWithdrawn(lease, nowMs)) return 'readmitted';
  return lease.seenDown ? 'seenDown' : 'withdrawn';
}

function keep(lease: Lease): Lease {
  return lease;
}

function refresh(
  { address, generation }: Lease,
  { source, host, leaseMs, lastProbe }: ServerAnswer,
  nowMs: number,
): Lease {
  return {
    address,
    generation: generation + 1,
    source,
    ...defined({ host }),
    expiresAtMs: nowMs + leaseMs,
    misses: 0,
    state: 'leased',
    ...defined({ lastProbe }),
  };
}

function drop(lease: Lease, answer: ServerAnswer, nowMs: number): Lease {
  if (lease.state === 'shuttingDown' && lease.expiresAtMs <= nowMs && hasMissedTwice(lease)) return lease;
  const expiresAtMs = Math.min(lease.expiresAtMs, nowMs);
  const dropped = { ...recordOf(lease), expiresAtMs, misses: MISSES_TO_GO, missedAtMs: nowMs } as const;
  return { ...dropped, ...probed(answer), state: 'shuttingDown' };
}

/** Counts a miss and saves its result. After expiry and before removal, saves a changed result even without a counted miss. */
function miss(lease: Lease, answer: ServerAnswer, nowMs: number): Lease {
  const misses = answer.miss && missesWith(lease, answer.miss, nowMs);
  const isOpen = lease.expiresAtMs <= nowMs && !hasMissedTwice(lease);
  const isNews = isOpen && answer.lastProbe !== undefined && answer.lastProbe !== lease.lastProbe;
  if (misses === undefined && !isNews) return lease;
  return { ...lease, ...(misses !== undefined && { misses, missedAtMs: nowMs }), ...probed(answer) };
}

/** Ends a reported shutdown if the server's process has ended, so that the next answer counts as from a new process. */
function end(lease: Lease, answer: ServerAnswer, nowMs: number): Lease {
  const ended: Lease = answer.provesEnd ? { ...recordOf(lease), ...probed(answer), state: 'leased' } : lease;
  return miss(ended, answer, nowMs);
}

function late(lease: Lease, answer: ServerAnswer, nowMs: number): Lease {
  const { lateSinceMs } = lease;
  if (lateSinceMs === undefined) return { ...lease, lateSinceMs: nowMs };
  if (nowMs - lateSinceMs < (answer.lateAfterMs ?? 0)) return lease;
  return lease.state === 'shuttingDown' ? end(lease, answer, nowMs) : miss(lease, answer, nowMs);
}

function seeDown(lease: Lease, answer: ServerAnswer): Lease {
  return lease.state === 'withdrawn' ? { ...lease, seenDown: true, ...probed(answer) } : lease;
}

function seeEnd(lease: Lease, answer: ServerAnswer): Lease {
  return answer.provesEnd ? seeDown(lease, answer) : lease;
}

/**
 * Returns the number of consecutive misses, including this one; `undefined` if this miss does not count, because the address is
 * already removed or the last miss is too recent.
 */
function missesWith(lease: Lease, { shortestMs, longestMs }: MissSpacing, nowMs: number): number | undefined {
  if (hasMissedTwice(lease) && lease.expiresAtMs <= nowMs) return undefined;
  const sinceMs = nowMs - (lease.missedAtMs ?? Number.NEGATIVE_INFINITY);
  if (lease.misses === 0 || Math.abs(sinceMs) > longestMs) return 1;
  return sinceMs < shortestMs ? undefined : Math.min(lease.misses + 1, MISSES_TO_GO);
}

/** Returns whether two misses remove the address. Misses do not count if the last miss came before the lease expired. */
export function hasMissedTwice({ misses, missedAtMs, expiresAtMs }: Lease): boolean {
  return misses >= MISSES_TO_GO && (missedAtMs === undefined || missedAtMs >= expiresAtMs);
}

export interface Withdrawal {
  readonly untilMs: number;
  /**
   * True if the agent of the server withdraws the address because the host shuts down. From then on, passes do not
   * probe the server, because it might still answer. The agent's next heartbeat with status 200 ends the withdrawal.
   */
  readonly goingDown?: boolean;
}

/**
 * Returns the lease with a withdrawal. If another withdrawal is already active, keeps its `seenDown` and the later of both ends.
 * Extends an expired lease to the time when its address was last published, because a pass that has read the lease may still
 * publish the address.
 */
export function withdrawn(lease: Lease, { untilMs, goingDown = false }: Withdrawal, nowMs: number) {
  const already = lease.state === 'withdrawn' ? lease : undefined;
  const endsMs = already === undefined ? Math.max(lease.expiresAtMs, lastPublishedMs(lease, nowMs)) : lease.expiresAtMs;
  return {
    ...lease,
    source: goingDown ? 'agent' : lease.source,
    expiresAtMs: goingDown ? Math.min(endsMs, nowMs) : endsMs,
    state: 'withdrawn',
    withdrawnUntilMs: Math.max(untilMs, already?.withdrawnUntilMs ?? 0),
    seenDown: goingDown || (withdrawnUntil(lease, nowMs) !== undefined && already?.seenDown === true),
  } as const;
}

/** Returns when an address was last published. After its lease expires, an address stays published until two misses. */
function lastPublishedMs(lease: Lease, nowMs: number): number {
  if (lease.generation === 0) return 0;
  return hasMissedTwice(lease) ? Math.min(lease.missedAtMs ?? 0, nowMs) : nowMs;
}

function recordOf(lease: Lease) {
  if (lease.state !== 'withdrawn') return lease;
  const { withdrawnUntilMs: _, seenDown: __, ...record } = lease;
  return record;
}

function probed({ lastProbe }: ServerAnswer): Pick<Lease, 'lastProbe'> {
  return lastProbe === undefined ? {} : { lastProbe };
}
