import type { Loop } from '../cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../cluster/schedules.ts';
import type { OutgoingMessage } from '../queue/message-queue.ts';
import { type TickMessage, tickBody } from './tick-message.ts';

/** The finest that a schedule can be. */
const SCHEDULE_MS = 60_000;

/** A cluster as far as its ticks go. */
export interface Ticking {
  readonly name: string;
  readonly intervalSeconds: Readonly<Record<Loop, number>>;
}

export interface PlannedTick extends OutgoingMessage {
  readonly tick: TickMessage;
  /** The tick that is due now; the others follow within the minute. */
  readonly isFirst: boolean;
}

/** Whether there are more clusters than one invocation runs at the same time. */
export function isFleet(clusters: readonly unknown[], clustersPerTick: number): boolean {
  return clusters.length > clustersPerTick;
}

interface PlanOptions {
  readonly dueAtMs: number;
  readonly nowMs: number;
  readonly clustersPerTick: number;
}

/**
 * What the minute's invocation queues: the ticks until the next minute, and in a fleet the one that is due now as well,
 * before the others. A time that has passed is left out, because the tick of now is nearer.
 */
export function planTicks(loop: Loop, clusters: readonly Ticking[], options: PlanOptions): PlannedTick[] {
  const { dueAtMs, nowMs, clustersPerTick } = options;
  const first = isFleet(clusters, clustersPerTick) ? ticksAt(loop, nowMs, clusters, options) : [];
  const frequent = clusters.filter(({ intervalSeconds }) => intervalSeconds[loop] * 1000 < SCHEDULE_MS);
  const later = laterTimes(loop, Math.min(dueAtMs, nowMs)).filter((atMs) => atMs > nowMs);
  return [...first, ...later.flatMap((atMs) => ticksAt(loop, atMs, frequent, options))];
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
