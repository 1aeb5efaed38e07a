import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import type { Pause } from '../table/clusters.ts';

export interface Timing {
  readonly nowMs: number;
  /** Absent: the loop never ran for this cluster. */
  readonly lastStartedAtMs: number | undefined;
  readonly force: boolean;
}

type Intervals = Pick<ClusterSpec, 'intervalSeconds'>;

/** Whether this tick is the nearest one to the end of the loop's interval: schedules come a little early or late. */
export function isDue(loop: Loop, spec: Intervals, { nowMs, lastStartedAtMs, force }: Timing): boolean {
  if (force || lastStartedAtMs === undefined) return true;
  const sinceMs = nowMs - lastStartedAtMs;
  const toleranceMs = (SCHEDULE_SECONDS[loop] * 1000) / 2;
  // A start in the future is a clock put back, which must not stop a loop.
  return sinceMs < 0 || sinceMs >= spec.intervalSeconds[loop] * 1000 - toleranceMs;
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
