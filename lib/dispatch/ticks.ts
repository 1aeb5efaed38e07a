import type { OutgoingMessage, Unsent } from '../aws/sqs-queue.ts';
import type { Loop } from '../cluster/cluster-spec.ts';
import { CLOSING_MS, CONCURRENT_PASSES, QUEUEING_MS } from '../runtime/budgets.ts';
import { withDeadline } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { someOf } from './log-pass.ts';
import { NONE_APART, type PlannedTick, planTicks, type SetApart, type Ticking } from './plan-ticks.ts';

export interface HandedOut<Cluster> {
  /** Clusters whose present tick this invocation must run itself. */
  readonly own: readonly Cluster[];
  readonly queued: number;
}

/**
 * Queues the ticks until the next minute, and with several clusters the present one. Failures are logged and counted;
 * this invocation then runs the present tick. Never throws.
 */
export async function queueTicks<Cluster extends Ticking>(
  loop: Loop,
  clusters: readonly Cluster[],
  { dueAtMs, apart = NONE_APART }: { readonly dueAtMs: number; readonly apart?: SetApart },
  invocation: Invocation,
): Promise<HandedOut<Cluster>> {
  const { tickQueue, nowMs, clustersPerTick = CONCURRENT_PASSES } = invocation.environment;
  if (tickQueue === undefined) return { own: clusters, queued: 0 };
  const ticks = planTicks(loop, clusters, { dueAtMs, nowMs: nowMs(), clustersPerTick, apart });
  const unsent = await sendTicks(ticks, invocation);
  const firstOf = (messages: readonly PlannedTick[]) =>
    new Set(messages.flatMap(({ tick, isFirst }) => (isFirst ? tick.clusters : [])));
  const planned = firstOf(ticks);
  const leftHere = firstOf(unsent.map(({ message }) => message));
  const own = clusters.filter(({ name }) => leftHere.has(name) || !(planned.has(name) || apart.suspects.has(name)));
  return { own, queued: ticks.length - unsent.length };
}

/** Queues ticks. Failed ones are logged, counted and returned. Never throws. */
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
    const errors = [...new Set(unsent.map(({ error }) => errorSentence(error)))];
    telemetry.log('error', 'ticks not queued', { ticks: unsent.length, errors: someOf(errors) });
  }
  return unsent;
}
