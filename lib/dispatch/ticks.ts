import * as z from 'zod/mini';
import type { OutgoingMessage } from '../aws/sqs-queue.ts';
import { type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import { shapeFaults } from '../cluster/shape-faults.ts';
import { jsonIn } from '../cluster/values.ts';
import { CLOSING_MS, CONCURRENT_PASSES, QUEUEING_MS } from '../runtime/budgets.ts';
import { withDeadline } from '../runtime/deadline.ts';
import { clusterName } from '../runtime/errors.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { someOf } from './log-pass.ts';

/** One tick of a loop for some of its clusters, as it waits in the loop's queue. */
export interface TickMessage {
  readonly loop: Loop;
  readonly dueAtMs: number;
  readonly clusters: readonly string[];
}

export type ReceivedTick =
  | { readonly outcome: 'due'; readonly clusters: readonly string[]; readonly dueAtMs: number }
  /** Later than an interval: the next tick has come already. */
  | { readonly outcome: 'late'; readonly lateMs: number; readonly clusters: readonly string[] }
  | { readonly outcome: 'unreadable'; readonly reason: string };

const SCHEMA = 1;

const tick = z.looseObject({
  schema: z.literal(SCHEMA, `is not ${SCHEMA}, the one that this version reads`),
  loop: z.string(),
  dueAtMs: z.number(),
  clusters: z.array(clusterName).check(z.minLength(1, 'names no cluster')),
});

export function tickBody({ loop, dueAtMs, clusters }: TickMessage): string {
  return JSON.stringify({ schema: SCHEMA, loop, dueAtMs, clusters });
}

/** Judges the body of a message that `loop` received. */
export function receiveTick(body: string, loop: Loop, nowMs: number): ReceivedTick {
  const parsed = tick.safeParse(jsonIn(body));
  if (!parsed.success)
    return { outcome: 'unreadable', reason: `It is no tick: ${shapeFaults(parsed.error, 'the event')}` };
  const { dueAtMs, clusters } = parsed.data;
  if (parsed.data.loop !== loop) {
    return { outcome: 'unreadable', reason: `It is a tick of the loop ${parsed.data.loop}, and this is ${loop}` };
  }
  const lateMs = nowMs - dueAtMs;
  if (lateMs > SCHEDULE_SECONDS[loop] * 1000) return { outcome: 'late', lateMs, clusters };
  return { outcome: 'due', clusters, dueAtMs };
}

/** The finest that a schedule can be. */
const SCHEDULE_MS = 60_000;

export interface Ticking {
  readonly name: string;
  readonly intervalSeconds: Readonly<Record<Loop, number>>;
}

export interface PlannedTick extends OutgoingMessage {
  readonly tick: TickMessage;
  /** The tick that is due now; the others follow within the minute. */
  readonly isFirst: boolean;
}

/** A message of clusters that answer is done within a quarter of the shortest interval. */
const MESSAGES_OF_A_SLOT = 4;
const LEAST_CONCURRENCY = 10;

/** Returns how many messages a loop's function must process at the same time (`tickConcurrency`) for so many clusters. */
export function concurrencyFor(clusters: number, clustersPerTick: number): number {
  return Math.max(LEAST_CONCURRENCY, Math.ceil(clusters / clustersPerTick / MESSAGES_OF_A_SLOT));
}

interface PlanOptions {
  readonly dueAtMs: number;
  readonly nowMs: number;
  readonly clustersPerTick: number;
  /** Clusters whose API server gave no answer lately. */
  readonly unreachable: ReadonlySet<string>;
}

/**
 * Returns the ticks that the minute's invocation queues: those until the next minute, and in a fleet the one that is due
 * now as well, before the others. A time that has passed is left out, because the tick of now is nearer.
 *
 * Clusters that give no answer use up the time of a whole pass. They have messages of their own, after the others of that
 * time, and one tick in each minute.
 */
export function planTicks(loop: Loop, all: readonly Ticking[], options: PlanOptions): PlannedTick[] {
  const { dueAtMs, nowMs, clustersPerTick, unreachable } = options;
  const clusters = all.filter(({ name }) => !unreachable.has(name));
  const dead = all.filter(({ name }) => unreachable.has(name));
  const isFleet = all.length > clustersPerTick;
  const first = isFleet ? ticksAt(loop, nowMs, clusters, options) : [];
  const frequent = clusters.filter(({ intervalSeconds }) => intervalSeconds[loop] * 1000 < SCHEDULE_MS);
  const later = laterTimes(loop, Math.min(dueAtMs, nowMs)).filter((atMs) => atMs > nowMs);
  return [
    ...first,
    ...ticksAt(loop, nowMs, dead, options),
    ...later.flatMap((atMs) => ticksAt(loop, atMs, frequent, options)),
  ];
}

function laterTimes(loop: Loop, fromMs: number): number[] {
  const everyMs = SCHEDULE_SECONDS[loop] * 1000;
  const times: number[] = [];
  for (let offsetMs = everyMs; offsetMs < SCHEDULE_MS; offsetMs += everyMs) times.push(fromMs + offsetMs);
  return times;
}

function ticksAt(
  loop: Loop,
  dueAtMs: number,
  clusters: readonly Ticking[],
  { nowMs, clustersPerTick }: PlanOptions,
): PlannedTick[] {
  const ticks: PlannedTick[] = [];
  for (let start = 0; start < clusters.length; start += clustersPerTick) {
    const names = clusters.slice(start, start + clustersPerTick).map(({ name }) => name);
    const tick: TickMessage = { loop, dueAtMs, clusters: names };
    const delaySeconds = Math.ceil((dueAtMs - nowMs) / 1000);
    ticks.push({ tick, body: tickBody(tick), delaySeconds, isFirst: dueAtMs === nowMs });
  }
  return ticks;
}

export interface HandedOut<Cluster> {
  /** Clusters whose tick of now is left to this invocation. */
  readonly own: readonly Cluster[];
  readonly queued: number;
}

/**
 * Queues the ticks until the next minute, and in a fleet that of now. What cannot be queued is logged and counted; the
 * tick of now is then left to this invocation. Never throws.
 */
export async function queueTicks<Cluster extends Ticking>(
  loop: Loop,
  clusters: readonly Cluster[],
  { dueAtMs, unreachable = NONE }: { readonly dueAtMs: number; readonly unreachable?: ReadonlySet<string> },
  { environment, telemetry, remainingMs }: Invocation,
): Promise<HandedOut<Cluster>> {
  const { tickQueue, nowMs, clustersPerTick = CONCURRENT_PASSES } = environment;
  if (tickQueue === undefined) return { own: clusters, queued: 0 };
  const ticks = planTicks(loop, clusters, { dueAtMs, nowMs: nowMs(), clustersPerTick, unreachable });
  if (ticks.length === 0) return { own: clusters, queued: 0 };

  const unsent = await withDeadline(environment, Math.min(QUEUEING_MS, remainingMs() - CLOSING_MS), (signal) =>
    tickQueue.send(ticks, signal),
  );
  if (unsent.length > 0) {
    telemetry.count('unqueuedTicks', unsent.length);
    const errors = [...new Set(unsent.map(({ error }) => errorSentence(error)))];
    telemetry.log('error', 'ticks not queued', { ticks: unsent.length, errors: someOf(errors) });
  }
  const firstOf = (messages: readonly PlannedTick[]) =>
    new Set(messages.flatMap(({ tick, isFirst }) => (isFirst ? tick.clusters : [])));
  const planned = firstOf(ticks);
  const leftHere = firstOf(unsent.map(({ message }) => message));
  const own = clusters.filter(({ name }) => !planned.has(name) || leftHere.has(name));
  return { own, queued: ticks.length - unsent.length };
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the ticks that are due of the messages that a loop received. The others are logged, counted and dropped. */
export function receivedTicks(
  loop: Loop,
  bodies: readonly string[],
  nowMs: number,
  telemetry: Telemetry,
): { readonly names: readonly string[]; readonly dueAtMs?: number } {
  const names = new Set<string>();
  const dueAtMs: number[] = [];
  for (const body of bodies) {
    const received = receiveTick(body, loop, nowMs);
    switch (received.outcome) {
      case 'due':
        for (const name of received.clusters) names.add(name);
        dueAtMs.push(received.dueAtMs);
        break;
      case 'late':
        telemetry.count('lateTicks', 1);
        telemetry.log('warn', 'tick dropped', { lateMs: received.lateMs, clusters: received.clusters });
        break;
      case 'unreadable':
        telemetry.count('unreadableTicks', 1);
        telemetry.log('error', 'message dropped', { errors: [received.reason] });
    }
  }
  return { names: [...names], ...(dueAtMs.length > 0 && { dueAtMs: Math.min(...dueAtMs) }) };
}
