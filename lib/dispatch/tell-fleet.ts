import { LOOPS } from '../cluster/cluster-spec.ts';
import { listRunRecords, type RunRecords } from '../table/run-records.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { FleetFigure } from '../telemetry/metrics.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { CLOSING_MS, CONCURRENT_READS, FIGURES_MS } from './budgets.ts';
import { concurrently } from './concurrently.ts';
import { unlessAborted } from './deadline.ts';
import { figuresOf, type Standing, standingOf } from './fleet-figures.ts';
import type { Invocation } from './invocation.ts';
import type { Roster, RosterEntry } from './roster.ts';
import { someOf } from './some-of.ts';

interface NamedStanding extends Standing {
  readonly name: string;
}

/** Nothing of such a cluster is known to be well. */
const UNREADABLE: Standing = { paused: false, overdue: [], failing: LOOPS, withoutLiveLease: false };

/**
 * Works out from the run records how the stack's clusters are, counts it, and names those that are not well. Never
 * throws: when the records cannot be read the figures are missing, and whoever watches them sees that.
 */
export async function tellFleet(invocation: Invocation, roster: Roster): Promise<void> {
  const { environment, telemetry, remainingMs } = invocation;
  const { stack, nowMs } = environment;
  const ours = roster.entries.filter(({ owner }) => owner === undefined || owner.stack === stack);
  const standings: NamedStanding[] = roster.unreadable.map(({ name }) => ({ name, ...UNREADABLE }));
  const moment = { pausedAll: roster.pausedAll, nowMs: nowMs() };
  const deadline = environment.startDeadline(Math.min(FIGURES_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  try {
    const table = environment.table(deadline.signal);
    const judge = async (entry: RosterEntry): Promise<Standing> => {
      const records: RunRecords | undefined = await listRunRecords(table, entry.name);
      return records === undefined ? UNREADABLE : standingOf(entry, records, moment);
    };
    await unlessAborted(deadline.signal, () => eachStanding(ours, judge, (standing) => standings.push(standing)));
    tell(telemetry, standings);
  } catch (error) {
    telemetry.log('error', 'fleet figures missing', { errors: [errorSentence(error)] });
  } finally {
    deadline.cancel();
  }
}

/** The first failure ends it: half of the figures are none. */
async function eachStanding(
  entries: readonly RosterEntry[],
  judge: (entry: RosterEntry) => Promise<Standing>,
  take: (standing: NamedStanding) => void,
): Promise<void> {
  const failures: unknown[] = [];
  await concurrently(entries, CONCURRENT_READS, async (entry) => {
    if (failures.length > 0) return;
    try {
      take({ name: entry.name, ...(await judge(entry)) });
    } catch (error) {
      failures.push(error);
    }
  });
  if (failures.length > 0) throw failures[0];
}

function tell(telemetry: Telemetry, standings: readonly NamedStanding[]): void {
  const figures = figuresOf(standings);
  for (const [name, value] of Object.entries(figures)) telemetry.count(name as FleetFigure, value);
  const { clustersOverdue, clustersFailing, clustersWithoutLiveLease } = figures;
  if (clustersOverdue + clustersFailing + clustersWithoutLiveLease === 0) return;
  telemetry.log('warn', 'clusters not well', {
    overdue: someOf(standings.flatMap(({ name, overdue }) => named(name, overdue))),
    failing: someOf(standings.flatMap(({ name, failing }) => named(name, failing))),
    withoutLiveLease: someOf(standings.flatMap(({ name, withoutLiveLease }) => (withoutLiveLease ? [name] : []))),
  });
}

function named(name: string, loops: readonly string[]): string[] {
  return loops.length === 0 ? [] : [`${name}: ${loops.join(', ')}`];
}
