import type { OutgoingMessage, Unsent } from '../aws/send-batches.ts';
import { CLOSING_MS, QUEUEING_MS, withDeadline } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { type Loop, SCHEDULE_SECONDS } from '../spec/cluster-spec.ts';
import type { Suspect } from '../table/fleet-notes.ts';
import { batchesOf } from '../util/async.ts';
import type { ClusterSummary } from './cluster-list.ts';
import { SCHEDULE_MS } from './due.ts';
import { type TickMessage, tickBody } from './event.ts';
import { reasonsOf } from './report-pass.ts';
import type { LoopInvocation } from './run-pass.ts';

type Ticking = Pick<ClusterSummary, 'name' | 'intervalSeconds'>;

/** Clusters whose ticks do not share messages with the other clusters. */
export interface SetApart {
  readonly unreachable: ReadonlySet<string>;
  readonly suspects: ReadonlyMap<string, Suspect>;
}

export const NONE_APART: SetApart = { unreachable: new Set(), suspects: new Map() };

export interface PlannedTick extends OutgoingMessage {
  readonly tick: TickMessage;
  /** True if the tick is the first of this minute for its clusters. */
  readonly isFirst: boolean;
}

/** The number of messages that one process can handle in the shortest interval, if the clusters answer. */
const MESSAGES_OF_A_SLOT = 4;
const LEAST_CONCURRENCY = 10;
/** The maximum number of suspects with messages of their own: the smallest stack can process them in the shortest interval. */
export const MOST_ALONE = MESSAGES_OF_A_SLOT * LEAST_CONCURRENCY;

/** The seconds over which the ticks of many clusters are spread. They must not exceed the shortest interval. */
const SPREAD_SECONDS = 10;

/** Returns the `tickConcurrency` that a loop's function needs for a number of clusters. */
export function concurrencyFor(clusters: number, clustersPerTick: number): number {
  return Math.max(LEAST_CONCURRENCY, slotsFor(clusters, clustersPerTick));
}

function slotsFor(clusters: number, clustersPerTick: number): number {
  return Math.ceil(clusters / clustersPerTick / MESSAGES_OF_A_SLOT);
}

interface PlanOptions {
  readonly dueAtMs: number;
  readonly nowMs: number;
  readonly clustersPerTick: number;
  readonly apart: SetApart;
}

/**
 * Returns the ticks of the minute, current ticks first. If there is only one cluster and it answers, it has no current tick,
 * because this invocation runs its pass. An unreachable or suspect cluster has one tick, after the first ticks of all other
 * clusters, because the passes of an unreachable cluster use all of their time, and a suspect cluster may block its process.
 */
export function planTicks(loop: Loop, all: readonly Ticking[], options: PlanOptions): PlannedTick[] {
  const { dueAtMs, nowMs, apart } = options;
  const isSuspect = ({ name }: Ticking) => apart.suspects.has(name);
  const isDead = ({ name }: Ticking) => apart.unreachable.has(name);
  const clusters = all.filter((one) => !isSuspect(one) && !isDead(one));
  const dead = all.filter((one) => !isSuspect(one) && isDead(one));
  const fromMs = Math.min(dueAtMs, nowMs);
  /** Returns the first ticks of some clusters. The ticks are due now; in a large fleet, within `SPREAD_SECONDS`. */
  const nowOf = (some: readonly Ticking[]) =>
    spread(some, some.length, options).flatMap(([ms, ofSecond]) =>
      ticksAt(loop, Math.max(nowMs, fromMs + ms), ofSecond, options).map((tick) => ({ ...tick, isFirst: true })),
    );
  const isFrequent = ({ intervalSeconds }: Ticking) => intervalSeconds[loop] * 1000 < SCHEDULE_MS;
  const frequent = spread(clusters.filter(isFrequent), clusters.length, options);
  const everyMs = SCHEDULE_SECONDS[loop] * 1000;
  const laterMs = Array.from({ length: Math.ceil(SCHEDULE_MS / everyMs) - 1 }, (_, at) => fromMs + (at + 1) * everyMs);
  const later = laterMs.flatMap((atMs) =>
    frequent.flatMap(([ms, ofSecond]) => (atMs + ms > nowMs ? ticksAt(loop, atMs + ms, ofSecond, options) : [])),
  );
  const alone = inTurn(all, options);
  return [
    ...(all.length > 1 ? nowOf(clusters) : []),
    ...nowOf(dead),
    ...alone.slice(0, MOST_ALONE).flatMap((one) => ticksAt(loop, nowMs, [one], options, fromMs + SCHEDULE_MS)),
    ...ticksAt(loop, nowMs, alone.slice(MOST_ALONE), options, fromMs + SCHEDULE_MS),
    ...later,
  ];
}

/**
 * Spreads clusters over `SPREAD_SECONDS` by a hash of the name, because Lambda's pollers cannot receive the ticks of a large
 * fleet in one second. Spread ticks need more messages, so the ticks of a small fleet stay together.
 */
function spread(
  some: readonly Ticking[],
  all: number,
  { clustersPerTick }: PlanOptions,
): [number, readonly Ticking[]][] {
  if (Math.ceil(all / clustersPerTick) <= LEAST_CONCURRENCY) return [[0, some]];
  return [...Map.groupBy(some, ({ name }) => secondOf(name) * 1000)].sort(([one], [other]) => one - other);
}

/** Returns the second in which a cluster's ticks are due: a hash of its name. Low bits of FNV-1a differ even for similar names. */
function secondOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const letter of name) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0) % SPREAD_SECONDS;
}

/**
 * Returns the suspects that have a tick in this minute. A suspect in state `unproven` or `again` may block a process, so these
 * take turns in the processes that other clusters do not need. If very many suspects are in these states, no single cluster is
 * the cause, and all have a tick.
 */
function inTurn(all: readonly Ticking[], { nowMs, clustersPerTick, apart: { suspects } }: PlanOptions): Ticking[] {
  const stateOf = ({ name }: Ticking) => suspects.get(name)?.state;
  const proven = all.filter((one) => stateOf(one) === 'proven');
  const others = all.filter((one) => stateOf(one) === 'unproven' || stateOf(one) === 'again');
  const needed = slotsFor(all.length - others.length, clustersPerTick);
  const most = Math.max(1, concurrencyFor(all.length, clustersPerTick) - needed);
  if (others.length <= most || others.length > Math.min(MOST_ALONE, all.length / 2)) return [...proven, ...others];
  const turn = (Math.floor(nowMs / SCHEDULE_MS) * most) % others.length;
  return [...proven, ...[...others, ...others].slice(turn, turn + most)];
}

function ticksAt(
  loop: Loop,
  dueAtMs: number,
  clusters: readonly Ticking[],
  { nowMs, clustersPerTick }: Pick<PlanOptions, 'nowMs' | 'clustersPerTick'>,
  followedUntilMs?: number,
): PlannedTick[] {
  const followed = followedUntilMs !== undefined && { followedUntilMs };
  return batchesOf(clusters, clustersPerTick).map((batch) =>
    plannedTick({ loop, dueAtMs, clusters: batch.map(({ name }) => name), ...followed }, nowMs),
  );
}

export function plannedTick(tick: TickMessage, nowMs: number): PlannedTick {
  const delaySeconds = Math.ceil((tick.dueAtMs - nowMs) / 1000);
  return { tick, body: tickBody(tick), delaySeconds, isFirst: tick.dueAtMs === nowMs };
}

/** Returns the next tick of suspects after their passes. If a pass ends the process instead, no tick follows in this minute. */
export function followingTick(tick: TickMessage, nowMs: number): PlannedTick[] {
  const { loop, dueAtMs, followedUntilMs = 0 } = tick;
  const everyMs = SCHEDULE_SECONDS[loop] * 1000;
  const nextMs = dueAtMs + everyMs * Math.max(1, Math.ceil((nowMs - dueAtMs) / everyMs));
  return nextMs < followedUntilMs ? [plannedTick({ ...tick, dueAtMs: nextMs }, nowMs)] : [];
}

/** Queues the ticks of this minute. Never throws. Returns `own`, the clusters whose current tick this invocation must run. */
export async function queueTicks(
  { loop, ...invocation }: LoopInvocation,
  clusters: readonly Ticking[],
  dueAtMs: number,
  apart: SetApart,
): Promise<{ readonly own: readonly string[]; readonly queued: number }> {
  const { tickQueue, nowMs, clustersPerTick } = invocation.environment;
  const names = clusters.map(({ name }) => name);
  if (tickQueue === undefined) return { own: names, queued: 0 };
  const ticks = planTicks(loop.id, clusters, { dueAtMs, nowMs: nowMs(), clustersPerTick, apart });
  const unsent = await sendTicks(ticks, invocation);
  const firstOf = (messages: readonly PlannedTick[]) =>
    new Set(messages.flatMap(({ tick, isFirst }) => (isFirst ? tick.clusters : [])));
  const planned = firstOf(ticks);
  const leftHere = firstOf(unsent.map(({ message }) => message));
  const own = names.filter((name) => leftHere.has(name) || !(planned.has(name) || apart.suspects.has(name)));
  return { own, queued: ticks.length - unsent.length };
}

/** Queues ticks. Logs, counts and returns the ticks that could not be queued. Never throws. */
export async function sendTicks<Tick extends OutgoingMessage>(
  ticks: readonly Tick[],
  { environment, telemetry, remainingMs }: Invocation,
): Promise<readonly Unsent<Tick>[]> {
  const { tickQueue } = environment;
  if (tickQueue === undefined || ticks.length === 0) return [];
  const unsent = await withDeadline(environment, Math.min(QUEUEING_MS, remainingMs() - CLOSING_MS), (signal) =>
    tickQueue.send(ticks, signal),
  );
  if (unsent.length > 0) {
    telemetry.count('unqueuedTicks', unsent.length);
    telemetry.log('error', 'ticks not queued', { ticks: unsent.length, errors: reasonsOf(unsent) });
  }
  return unsent;
}
