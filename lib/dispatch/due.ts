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

/** The pause that holds a cluster's passes now: its own, or the one on all. */
export function pauseInForce(pauses: readonly (Pause | undefined)[], nowMs: number): Pause | undefined {
  return pauses.find((pause) => pause !== undefined && pause.untilMs > nowMs);
}
