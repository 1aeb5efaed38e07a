import { CONCURRENT_READS, FIGURES_MS, withinInvocation } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { LOOPS, type Loop } from '../spec/cluster-spec.ts';
import { ALL_CLUSTERS, CLUSTERS, clustersIn, otherOwner, type Pause } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { listRunRecords, type RunRecords } from '../table/run-records.ts';
import { errorSentence, type FleetFigure, samplesOf, type Telemetry } from '../telemetry/telemetry.ts';
import { batchesOf, eachOf } from '../util/async.ts';
import { type ClusterSummary, clusterSummary, type ShortClusterList } from './cluster-list.ts';
import { OVERDUE_PERIODS, overdueAfterMs, pauseInForce } from './due.ts';
import { countBody } from './event.ts';
import { someOf } from './report-pass.ts';
import { sendTicks } from './ticks.ts';

type NamedHealth = ClusterHealth & { readonly name: string };

const NOTHING_WRONG: ClusterHealth = { overdue: [], failing: [], fullestRangePercent: 0 };
const UNREADABLE: ClusterHealth = { ...NOTHING_WRONG, failing: LOOPS };

/** The number of clusters whose health a function of 256 MB can count while it also processes ticks. */
const COUNTED_AT_ONCE = 250;
/** The delay of the first message. Messages are processed in mid-minute, so that a late one still counts for this minute. */
const PARTS_FROM_SECONDS = 20;
const PARTS_WITHIN_SECONDS = 20;

/** Counts the stack's clusters by health, or queues a message for each part of a large fleet. Never throws. */
export async function reportFleet(invocation: Invocation, list: ShortClusterList): Promise<void> {
  const { entries, unreadable } = list;
  const { environment, telemetry } = invocation;
  const ours = entries.filter((entry) => otherOwner(entry, environment.stack) === undefined);
  telemetry.count('clustersRegistered', ours.length + unreadable.length);
  if (ours.length <= COUNTED_AT_ONCE || environment.tickQueue === undefined) {
    await reportPart(invocation, async () => ({ ...list, entries: ours }));
    return;
  }
  if (unreadable.length > 0) logFleet(telemetry, unreadable, []);
  const parts = batchesOf(ours, COUNTED_AT_ONCE);
  const dueAtMs = environment.nowMs();
  const messages = parts.map((part, at) => ({
    body: countBody(dueAtMs, part),
    delaySeconds: PARTS_FROM_SECONDS + Math.floor((PARTS_WITHIN_SECONDS * at) / parts.length),
  }));
  await sendTicks(messages, invocation);
}

/** Counts these clusters by their health. Never throws. */
export function reportNamed(invocation: Invocation, names: readonly string[]): Promise<void> {
  return reportPart(invocation, async (table) => {
    const items = await eachOf([ALL_CLUSTERS, ...names], CONCURRENT_READS, (key) => table.get(CLUSTERS, key));
    const { clusters, unreadable, pausedAll } = clustersIn(items.filter((item) => item !== undefined));
    return { entries: clusters.map(clusterSummary), unreadable, pausedAll };
  });
}

async function reportPart(
  invocation: Invocation,
  read: (table: KeyValueTable) => Promise<ShortClusterList>,
): Promise<void> {
  const { environment, telemetry } = invocation;
  try {
    await withinInvocation(invocation, FIGURES_MS, async (signal) => {
      const table = environment.table(signal);
      const { entries, unreadable, pausedAll } = await read(table);
      const moment = { pausedAll, nowMs: environment.nowMs() };
      const judged = await eachOf(entries, CONCURRENT_READS, async (entry): Promise<NamedHealth> => {
        const records = await listRunRecords(table, entry.name);
        return { name: entry.name, ...(records === undefined ? UNREADABLE : healthOf(entry, records, moment)) };
      });
      logFleet(telemetry, unreadable, judged);
    });
  } catch (error) {
    telemetry.log('error', 'fleet figures missing', { errors: [errorSentence(error)] });
  }
}

function logFleet(
  telemetry: Telemetry,
  unreadable: ShortClusterList['unreadable'],
  judged: readonly NamedHealth[],
): void {
  const clusters = [...unreadable.map(({ name }) => ({ name, ...UNREADABLE })), ...judged];
  const figures = figuresOf(clusters);
  for (const [name, value] of Object.entries(figures)) telemetry.count(name as FleetFigure, value);
  const { clustersOverdue, clustersFailing, clustersWithoutLiveLease } = figures;
  if (clustersOverdue + clustersFailing + clustersWithoutLiveLease === 0) return;
  telemetry.log('warn', 'unhealthy clusters', {
    overdue: someOf(clusters.flatMap(({ name, overdue }) => named(name, overdue))),
    failing: someOf(clusters.flatMap(({ name, failing }) => named(name, failing))),
    withoutLiveLease: someOf(clusters.flatMap(({ name, withoutLiveLease }) => (withoutLiveLease ? [name] : []))),
  });
}

function named(name: string, loops: readonly string[]): string[] {
  return loops.length === 0 ? [] : [`${name}: ${loops.join(', ')}`];
}

export interface ClusterHealth {
  readonly paused?: true;
  /** The loops that failed three times in a row, or that have no recorded success within `overdueAfterMs`. */
  readonly overdue: readonly Loop[];
  readonly failing: readonly Loop[];
  readonly withoutLiveLease?: boolean;
  /** True if a loop has findings that do not resolve automatically. */
  readonly withFindings?: boolean;
  readonly withTwoOwners?: boolean;
  readonly withCredentialsEnding?: boolean;
  readonly fullestRangePercent: number;
}

/** Returns the health of a cluster. A paused cluster is neither overdue nor failing, because no pass runs. */
export function healthOf(
  entry: ClusterSummary,
  records: RunRecords,
  { pausedAll, nowMs }: { readonly pausedAll: Pause | undefined; readonly nowMs: number },
): ClusterHealth {
  const pauses = [pausedAll, entry.paused];
  if (pauseInForce(pauses, nowMs) !== undefined) return { ...NOTHING_WRONG, paused: true };
  const sinceMs = Math.max(entry.writtenAtMs, ...pauses.map((pause) => pause?.untilMs ?? 0));
  const isOverdue = (loop: Loop) => {
    const { failuresInARow = 0, lastSuccessAtMs = 0 } = records[loop] ?? {};
    if (failuresInARow >= OVERDUE_PERIODS) return true;
    return nowMs - Math.max(sinceMs, lastSuccessAtMs) > overdueAfterMs(loop, entry);
  };
  const counts = Object.values(records).map((record) => record.counts);
  const hasSome = (name: string) => counts.some((one) => (one[name] ?? 0) > 0);
  return {
    overdue: LOOPS.filter(isOverdue),
    failing: LOOPS.filter((loop) => records[loop]?.outcome === 'failed'),
    withoutLiveLease: entry.publishes && records['kubernetes-service']?.counts['activeLeases'] === 0,
    withFindings: hasSome('needAttention'),
    withTwoOwners: records['kubernetes-service']?.findings.some(({ type }) => type === 'twoOwners') ?? false,
    withCredentialsEnding: hasSome('credentialsEnding'),
    fullestRangePercent: Math.max(0, ...counts.map((one) => samplesOf(one).fullestRangePercent ?? 0)),
  };
}

function figuresOf(
  clusters: readonly ClusterHealth[],
): Readonly<Record<Exclude<FleetFigure, 'clustersRegistered'>, number>> {
  const count = (is: (cluster: ClusterHealth) => boolean | undefined) => clusters.filter(is).length;
  return {
    clustersJudged: clusters.length,
    clustersOverdue: count(({ overdue }) => overdue.length > 0),
    clustersFailing: count(({ failing }) => failing.length > 0),
    clustersWithoutLiveLease: count(({ withoutLiveLease }) => withoutLiveLease),
    clustersPaused: count(({ paused }) => paused),
    clustersWithFindings: count(({ withFindings }) => withFindings),
    clustersWithTwoOwners: count(({ withTwoOwners }) => withTwoOwners),
    clustersWithCredentialsEnding: count(({ withCredentialsEnding }) => withCredentialsEnding),
    fullestRangeOfFleetPercent: Math.max(0, ...clusters.map(({ fullestRangePercent }) => fullestRangePercent)),
  };
}
