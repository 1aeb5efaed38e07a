import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import { eachOf } from '../cluster/each-of.ts';
import { CLOSING_MS, CONCURRENT_READS, FIGURES_MS } from '../runtime/budgets.ts';
import { unlessAborted } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import type { Pause } from '../table/clusters.ts';
import { listRunRecords, type RunRecords } from '../table/run-records.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { FleetFigure, Telemetry } from '../telemetry/telemetry.ts';
import type { Roster, RosterEntry } from './cluster-list.ts';
import { isDueAtEveryTick, pauseInForce } from './due.ts';
import { someOf } from './log-pass.ts';
import { RECORD_AT_LEAST_EVERY_MS } from './record-pass.ts';

interface NamedStanding extends Standing {
  readonly name: string;
}

/** Nothing of such a cluster is known to be well. */
const UNREADABLE: Standing = { paused: false, overdue: [], failing: LOOPS, withoutLiveLease: false };

/**
 * Works out from the run records how the stack's clusters are, counts it, and names those that are not well. Never
 * throws: when the records cannot be read the figures are missing, and whoever watches them sees that.
 */
export async function reportFleet(invocation: Invocation, roster: Roster): Promise<void> {
  const { environment, telemetry, remainingMs } = invocation;
  const { stack, nowMs } = environment;
  const ours = roster.entries.filter(({ owner }) => owner === undefined || owner.stack === stack);
  const moment = { pausedAll: roster.pausedAll, nowMs: nowMs() };
  const deadline = environment.startDeadline(Math.min(FIGURES_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  try {
    const table = environment.table(deadline.signal);
    const judge = async (entry: RosterEntry): Promise<NamedStanding> => {
      const records: RunRecords | undefined = await listRunRecords(table, entry.name);
      const standing = records === undefined ? UNREADABLE : standingOf(entry, records, moment);
      return { name: entry.name, ...standing };
    };
    const judged = await unlessAborted(deadline.signal, () => eachOf(ours, CONCURRENT_READS, judge));
    tell(telemetry, [...roster.unreadable.map(({ name }) => ({ name, ...UNREADABLE })), ...judged]);
  } catch (error) {
    telemetry.log('error', 'fleet figures missing', { errors: [errorSentence(error)] });
  } finally {
    deadline.cancel();
  }
}

function tell(telemetry: Telemetry, standings: readonly NamedStanding[]): void {
  const figures = figuresOf(standings);
  for (const [name, value] of Object.entries(figures)) telemetry.count(name as FleetFigure, value);
  const { clustersOverdue, clustersFailing, clustersWithoutLiveLease } = figures;
  if (clustersOverdue + clustersFailing + clustersWithoutLiveLease === 0) return;
  telemetry.log('warn', 'unhealthy clusters', {
    overdue: someOf(standings.flatMap(({ name, overdue }) => named(name, overdue))),
    failing: someOf(standings.flatMap(({ name, failing }) => named(name, failing))),
    withoutLiveLease: someOf(standings.flatMap(({ name, withoutLiveLease }) => (withoutLiveLease ? [name] : []))),
  });
}

function named(name: string, loops: readonly string[]): string[] {
  return loops.length === 0 ? [] : [`${name}: ${loops.join(', ')}`];
}

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

function figuresOf(standings: readonly Standing[]): Readonly<Record<FleetFigure, number>> {
  const count = (is: (standing: Standing) => boolean) => standings.filter(is).length;
  return {
    clustersRegistered: standings.length,
    clustersOverdue: count(({ overdue }) => overdue.length > 0),
    clustersFailing: count(({ failing }) => failing.length > 0),
    clustersWithoutLiveLease: count(({ withoutLiveLease }) => withoutLiveLease),
    clustersPaused: count(({ paused }) => paused),
  };
}
