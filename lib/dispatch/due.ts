import { ClusterError } from '../kubernetes/cluster-port.ts';
import { DispatchError } from '../runtime/deadline.ts';
import { type ClusterSpec, type Loop, SCHEDULE_SECONDS, STACK_LOOP } from '../spec/cluster-spec.ts';
import type { Owner, Pause } from '../table/clusters.ts';
import type { RunRecord } from '../table/run-records.ts';
import { doubledMs } from '../util/back-off.ts';

export interface Timing {
  readonly nowMs: number;
  readonly last: Pick<RunRecord, 'startedAtMs' | 'withoutAnswer'> | undefined;
  /** True for a loop whose clusters share a queue. Passes of an unreachable cluster then run less often. */
  readonly backsOff: boolean;
}

type Intervals = Pick<ClusterSpec, 'intervalSeconds'>;

/** The error codes of a pass whose API server did not answer, or answered 5xx. */
const UNANSWERED: ReadonlySet<string> = new Set(['DeadlineExceeded', 'Unavailable']);
const LONGEST_BACKOFF_MS = 60_000;

/** Returns true if no probe was answered and the error means an unavailable API server; false for an error of the table. */
export function isWithoutAnswer(error: unknown, isAnyProbeAnswered: boolean): boolean {
  if (isAnyProbeAnswered || !(error instanceof ClusterError || error instanceof DispatchError)) return false;
  return UNANSWERED.has(error.code);
}

export function isUnreachable(record: Pick<RunRecord, 'withoutAnswer'> | undefined): boolean {
  return (record?.withoutAnswer ?? 0) > 0;
}

/** Returns whether the interval since the last pass is over or almost over, because ticks arrive a little early or late. */
export function isDue(loop: Loop, spec: Intervals, { nowMs, last, backsOff }: Timing): boolean {
  if (last === undefined) return true;
  const sinceMs = nowMs - last.startedAtMs;
  const toleranceMs = (SCHEDULE_SECONDS[loop] * 1000) / 2;
  // A start in the future means that a clock was set back. This must not stop a loop.
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  return sinceMs < 0 || sinceMs >= (backsOff ? backoffMs(last, intervalMs) : intervalMs) - toleranceMs;
}

/** Returns the delay after passes without an answer. The first such pass does not double the delay: a packet may be lost. */
function backoffMs({ withoutAnswer = 0 }: Pick<RunRecord, 'withoutAnswer'>, intervalMs: number): number {
  const doublings = Math.max(0, withoutAnswer - 1);
  return Math.max(intervalMs, doubledMs(intervalMs, doublings, LONGEST_BACKOFF_MS));
}

/** Returns the expected time between two passes: the loop's interval, or in back-off the time since the previous pass. */
export function spacingMs(loop: Loop, spec: Intervals, { nowMs, last, backsOff }: Timing): number {
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  if (!backsOff || last === undefined || !isUnreachable(last)) return intervalMs;
  // A delay may end shortly after the cluster's only tick of a minute.
  return Math.max(intervalMs, Math.min(2 * LONGEST_BACKOFF_MS, nowMs - last.startedAtMs));
}

/** The shortest period of a schedule. */
export const SCHEDULE_MS = 60_000;

/** Returns about when the next tick is: the first multiple of the period after `nowMs`. EventBridge may add an offset. */
export function nextTickMs(everyMs: number, nowMs: number): number {
  return (Math.floor(nowMs / everyMs) + 1) * everyMs;
}

/**
 * Returns when a loop's first pass is due: at the next tick. If no stack owns the cluster yet, the other loops wait until
 * kubernetes-service has claimed it.
 */
export function firstPassMs(loop: Loop, owner: Owner | undefined, nowMs: number): number {
  const fromMs = owner === undefined && loop !== STACK_LOOP ? nextTickMs(SCHEDULE_MS, nowMs) : nowMs;
  return nextTickMs(Math.max(SCHEDULE_MS, SCHEDULE_SECONDS[loop] * 1000), fromMs);
}

export function isDueAtEveryTick(loop: Loop, spec: Intervals): boolean {
  return spec.intervalSeconds[loop] <= SCHEDULE_SECONDS[loop];
}

/** A loop that is due at every tick writes a record at least this often. A record per pass would cost more than the passes. */
export const RECORD_AT_LEAST_EVERY_MS = 60_000;

/** A loop is overdue after this many intervals without a recorded success, or this many failures in a row. */
export const OVERDUE_PERIODS = 3;

/** Returns how long a loop may be without a recorded success before it is overdue. */
export function overdueAfterMs(loop: Loop, spec: Intervals): number {
  const unrecordedMs = isDueAtEveryTick(loop, spec) ? RECORD_AT_LEAST_EVERY_MS : 0;
  return OVERDUE_PERIODS * spec.intervalSeconds[loop] * 1000 + unrecordedMs;
}

/** Returns the first of the given pauses (of a cluster, or of all clusters) that is in force now. */
export function pauseInForce(pauses: readonly (Pause | undefined)[], nowMs: number): Pause | undefined {
  return pauses.find((pause) => pause !== undefined && pause.untilMs > nowMs);
}
