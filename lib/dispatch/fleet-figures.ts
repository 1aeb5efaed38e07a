import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import type { Pause } from '../table/clusters.ts';
import type { RunRecords } from '../table/run-records.ts';
import type { FleetFigure } from '../telemetry/metrics.ts';
import { isDueAtEveryTick, pauseInForce } from './due.ts';
import { RECORD_AT_LEAST_EVERY_MS } from './pass-record.ts';
import type { RosterEntry } from './roster.ts';

/** One cluster as its run records show it. */
export interface Standing {
  readonly paused: boolean;
  /** Loops without a success for three of their periods. */
  readonly overdue: readonly Loop[];
  /** Loops whose last pass failed. */
  readonly failing: readonly Loop[];
  readonly withoutLiveLease: boolean;
}

const PERIODS = 3;

/** A paused cluster is neither overdue nor failing: nobody runs its passes. */
export function standingOf(
  entry: RosterEntry,
  records: RunRecords,
  { pausedAll, nowMs }: { readonly pausedAll: Pause | undefined; readonly nowMs: number },
): Standing {
  const pauses = [pausedAll, entry.paused];
  if (pauseInForce(pauses, nowMs) !== undefined) {
    return { paused: true, overdue: [], failing: [], withoutLiveLease: false };
  }
  const sinceMs = Math.max(entry.writtenAtMs, ...pauses.map((pause) => pause?.untilMs ?? 0));
  return {
    paused: false,
    overdue: LOOPS.filter((loop) => isOverdue(loop, entry, records, { sinceMs, nowMs })),
    failing: LOOPS.filter((loop) => records[loop]?.outcome === 'failed'),
    withoutLiveLease: entry.publishes && records['kubernetes-service']?.counts['leasesHeld'] === 0,
  };
}

/**
 * Three passes in a row that failed, or none that succeeded for so long: since the last success, the last change of the
 * registration or the end of a pause. A loop that is due at every tick does not record each success.
 */
function isOverdue(
  loop: Loop,
  entry: RosterEntry,
  records: RunRecords,
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): boolean {
  const record = records[loop];
  if (record !== undefined && record.failuresInARow >= PERIODS) return true;
  return nowMs - Math.max(sinceMs, record?.lastSuccessAtMs ?? 0) > patienceMs(loop, entry);
}

/** How old the last record of a loop may be before something is wrong. */
export function patienceMs(loop: Loop, { intervalSeconds }: Pick<RosterEntry, 'intervalSeconds'>): number {
  const unrecordedMs = isDueAtEveryTick(loop, { intervalSeconds }) ? RECORD_AT_LEAST_EVERY_MS : 0;
  return PERIODS * intervalSeconds[loop] * 1000 + unrecordedMs;
}

export function figuresOf(standings: readonly Standing[]): Readonly<Record<FleetFigure, number>> {
  const count = (is: (standing: Standing) => boolean) => standings.filter(is).length;
  return {
    clustersRegistered: standings.length,
    clustersOverdue: count(({ overdue }) => overdue.length > 0),
    clustersFailing: count(({ failing }) => failing.length > 0),
    clustersWithoutLiveLease: count(({ withoutLiveLease }) => withoutLiveLease),
    clustersPaused: count(({ paused }) => paused),
  };
}
