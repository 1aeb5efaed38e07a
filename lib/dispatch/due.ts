import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import type { Pause } from '../table/clusters.ts';
import type { RunRecord } from '../table/run-records.ts';

export interface Timing {
  readonly nowMs: number;
  /** The loop's last pass for this cluster. Absent: it never ran. */
  readonly last: Pick<RunRecord, 'startedAtMs' | 'error' | 'failuresInARow'> | undefined;
  readonly force: boolean;
  /** Clusters share this loop's queue: one whose API server gives no answer is tried less often. */
  readonly backsOff: boolean;
}

type Intervals = Pick<ClusterSpec, 'intervalSeconds'>;

/** What an API server that gives no answer ends a pass with: such a pass takes all of its time. */
const UNANSWERED: ReadonlySet<string> = new Set(['DeadlineExceeded', 'Unavailable']);
const LONGEST_BACKOFF_MS = 60_000;

export function isUnreachable(record: Pick<RunRecord, 'error'> | undefined): boolean {
  return record?.error !== undefined && UNANSWERED.has(record.error.code);
}

/** Whether this tick is the nearest one to the end of the loop's interval: schedules come a little early or late. */
export function isDue(loop: Loop, spec: Intervals, { nowMs, last, force, backsOff }: Timing): boolean {
  if (force || last === undefined) return true;
  const sinceMs = nowMs - last.startedAtMs;
  const toleranceMs = (SCHEDULE_SECONDS[loop] * 1000) / 2;
  // A start in the future is a clock put back, which must not stop a loop.
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  return sinceMs < 0 || sinceMs >= (backsOff ? backoffMs(last, intervalMs) : intervalMs) - toleranceMs;
}

/** Doubles with each pass in a row that got no answer, up to a minute: dead clusters must not use up what the others run on. */
function backoffMs(last: Pick<RunRecord, 'error' | 'failuresInARow'>, intervalMs: number): number {
  if (!isUnreachable(last)) return intervalMs;
  return Math.max(intervalMs, Math.min(LONGEST_BACKOFF_MS, intervalMs * 2 ** last.failuresInARow));
}

/** Whether every tick is due, whenever the last pass was. */
export function isDueAtEveryTick(loop: Loop, spec: Intervals): boolean {
  return spec.intervalSeconds[loop] <= SCHEDULE_SECONDS[loop];
}

/** The record of a loop that is due at every tick may be so old: writing each would cost more than the pass. */
export const RECORD_AT_LEAST_EVERY_MS = 60_000;

/** So many periods without a success, or failures in a row, are too many: for alarms, `kbctl status` and the doctor alike. */
export const OVERDUE_PERIODS = 3;

/** How long a loop may be without a recorded success before it is overdue. */
export function overdueAfterMs(loop: Loop, spec: Intervals): number {
  const unrecordedMs = isDueAtEveryTick(loop, spec) ? RECORD_AT_LEAST_EVERY_MS : 0;
  return OVERDUE_PERIODS * spec.intervalSeconds[loop] * 1000 + unrecordedMs;
}

/** Returns the pause of a cluster's passes that is in force now: its own, or that of all clusters. */
export function pauseInForce(pauses: readonly (Pause | undefined)[], nowMs: number): Pause | undefined {
  return pauses.find((pause) => pause !== undefined && pause.untilMs > nowMs);
}
