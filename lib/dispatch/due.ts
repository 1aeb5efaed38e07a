import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { DispatchError } from '../runtime/deadline.ts';
import type { Pause } from '../table/clusters.ts';
import type { RunRecord } from '../table/run-records.ts';

export interface Timing {
  readonly nowMs: number;
  readonly last: Pick<RunRecord, 'startedAtMs' | 'withoutAnswer'> | undefined;
  /** True if passes of an unreachable cluster run less often, because the clusters share this loop's queue. */
  readonly backsOff: boolean;
}

type Intervals = Pick<ClusterSpec, 'intervalSeconds'>;

/** The codes of errors of a pass whose API server does not answer. Such a pass uses all of its time. */
const UNANSWERED: ReadonlySet<string> = new Set(['DeadlineExceeded', 'Unavailable']);
const LONGEST_BACKOFF_MS = 60_000;
/** A cluster in back-off has one tick per minute, and may not be due at that tick. */
const LONGEST_SPACING_MS = 2 * LONGEST_BACKOFF_MS;

/** Returns whether a pass got no answer of its cluster. A failure of the table does not count. */
export function isWithoutAnswer(error: unknown, isAnyProbeAnswered: boolean): boolean {
  if (isAnyProbeAnswered || !(error instanceof ClusterError || error instanceof DispatchError)) return false;
  return UNANSWERED.has(error.code);
}

export function isUnreachable(record: Pick<RunRecord, 'withoutAnswer'> | undefined): boolean {
  return (record?.withoutAnswer ?? 0) > 0;
}

/** Returns whether this tick is the nearest one to the end of the loop's interval. Ticks arrive a little early or late. */
export function isDue(loop: Loop, spec: Intervals, { nowMs, last, backsOff }: Timing): boolean {
  if (last === undefined) return true;
  const sinceMs = nowMs - last.startedAtMs;
  const toleranceMs = (SCHEDULE_SECONDS[loop] * 1000) / 2;
  // A start in the future means that a clock was set back. This must not stop a loop.
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  return sinceMs < 0 || sinceMs >= (backsOff ? backoffMs(last, intervalMs) : intervalMs) - toleranceMs;
}

/** The first pass without an answer does not count, because a packet may have been lost. Each further pass doubles the time. */
function backoffMs({ withoutAnswer = 0 }: Pick<RunRecord, 'withoutAnswer'>, intervalMs: number): number {
  const doublings = Math.max(0, withoutAnswer - 1);
  return Math.max(intervalMs, Math.min(LONGEST_BACKOFF_MS, intervalMs * 2 ** doublings));
}

/**
 * Returns the time between two passes of a loop. In back-off, it is the time since the last pass, but at least the interval and
 * at most `LONGEST_SPACING_MS`.
 */
export function spacingMs(loop: Loop, spec: Intervals, { nowMs, last, backsOff }: Timing): number {
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  if (!backsOff || last === undefined || !isUnreachable(last)) return intervalMs;
  return Math.max(intervalMs, Math.min(LONGEST_SPACING_MS, nowMs - last.startedAtMs));
}

/** Returns whether every tick is due, regardless of the time of the last pass. */
export function isDueAtEveryTick(loop: Loop, spec: Intervals): boolean {
  return spec.intervalSeconds[loop] <= SCHEDULE_SECONDS[loop];
}

/** A loop that is due at every tick writes a record at least so often. A record per pass would cost more than the pass. */
export const RECORD_AT_LEAST_EVERY_MS = 60_000;

/** The limit of intervals without a success, or of failures in a row, for alarms, `kbctl status` and the doctor. */
export const OVERDUE_PERIODS = 3;

/** Returns how long a loop may be without a recorded success before it is overdue. */
export function overdueAfterMs(loop: Loop, spec: Intervals): number {
  const unrecordedMs = isDueAtEveryTick(loop, spec) ? RECORD_AT_LEAST_EVERY_MS : 0;
  return OVERDUE_PERIODS * spec.intervalSeconds[loop] * 1000 + unrecordedMs;
}

/** Returns the pause of a cluster's passes that is in force now: its own, or that of all clusters. */
export function pauseInForce(pauses: readonly (Pause | undefined)[], nowMs: number): Pause | undefined {
  return pauses.find((pause) => pause !== undefined && pause.untilMs > nowMs);
}
