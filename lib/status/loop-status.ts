import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import { clusterSummary } from '../dispatch/cluster-list.ts';
import { overdueAfterMs } from '../dispatch/due.ts';
import { type ClusterHealth, healthOf } from '../dispatch/fleet-figures.ts';
import { type RunRecord, runKey } from '../table/run-records.ts';
import type { LoopStatus } from './cluster-status.ts';
import type { StatusInputs } from './status-inputs.ts';

/** What the run records say of the loops, in the words of the fleet's figures and alarms. */
export interface LoopsStanding extends ClusterHealth {
  /** All four, in the order of LOOPS. */
  readonly loops: readonly LoopStatus[];
}

export function loopsStanding(inputs: StatusInputs, nowMs: number): LoopsStanding {
  const { cluster, pausedAll, records, unreadable } = inputs;
  const standing = healthOf(clusterSummary(cluster), records, { pausedAll, nowMs });
  const isUnknown = (loop: Loop) => unreadable.some(({ key }) => key === runKey(loop));
  const stateOf = (loop: Loop): LoopStatus['state'] => {
    if (standing.paused) return 'paused';
    if (isUnknown(loop)) return 'unknown';
    const record = records[loop];
    if (record === undefined) return 'neverRan';
    const sinceMs = nowMs - record.startedAtMs;
    if (standing.overdue.includes(loop) && sinceMs > overdueAfterMs(loop, cluster.spec)) return 'late';
    return record.outcome === 'failed' ? 'failing' : 'good';
  };
  return {
    ...standing,
    overdue: standing.overdue.filter((loop) => !isUnknown(loop)),
    loops: LOOPS.map((loop) => loopStatus(loop, stateOf(loop), cluster.spec.intervalSeconds[loop], records[loop])),
  };
}

function loopStatus(
  loop: Loop,
  state: LoopStatus['state'],
  intervalSeconds: number,
  record: RunRecord | undefined,
): LoopStatus {
  if (record === undefined) return { loop, state, intervalSeconds, failuresInARow: 0 };
  const { startedAtMs, durationMs, outcome, mode, counts, error, failuresInARow, lastSuccessAtMs } = record;
  const findings = record.findingCount ?? record.findings.length;
  return {
    loop,
    state,
    intervalSeconds,
    lastPass: { startedAtMs, durationMs, outcome, mode, counts, ...(error && { error }), findings },
    failuresInARow,
    ...(lastSuccessAtMs !== undefined && { lastSuccessAtMs }),
  };
}

const MINUTE_MS = 60_000;

/**
 * Returns whether the loop ran within the last minute, and not when. A pass without news is recorded once a minute: of a loop
 * that runs more often, the recorded pass is not the last.
 */
export function isOneOfMany({ state, intervalSeconds, lastPass }: LoopStatus, nowMs: number): boolean {
  return state === 'good' && intervalSeconds * 1000 < MINUTE_MS && nowMs - (lastPass?.startedAtMs ?? 0) < MINUTE_MS;
}
