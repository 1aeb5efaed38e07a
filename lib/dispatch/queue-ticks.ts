import type { Loop } from '../cluster/cluster-spec.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { CLOSING_MS, CONCURRENT_PASSES, QUEUEING_MS } from './budgets.ts';
import type { Invocation } from './invocation.ts';
import { someOf } from './some-of.ts';
import { isFleet, planTicks, type Ticking } from './tick-plan.ts';

/** What the minute's invocation handed out. */
export interface HandedOut<Cluster> {
  /** Clusters whose tick of now is left to this invocation. */
  readonly own: readonly Cluster[];
  /** Messages that were queued. */
  readonly queued: number;
}

/**
 * Queues the ticks until the next minute, and in a fleet that of now. What cannot be queued is told and counted; of the
 * tick of now it is done here instead. Never throws.
 */
export async function queueTicks<Cluster extends Ticking>(
  loop: Loop,
  clusters: readonly Cluster[],
  dueAtMs: number,
  { environment, telemetry, remainingMs }: Invocation,
): Promise<HandedOut<Cluster>> {
  const { tickQueue, nowMs, clustersPerTick = CONCURRENT_PASSES } = environment;
  if (tickQueue === undefined) return { own: clusters, queued: 0 };
  const ticks = planTicks(loop, clusters, { dueAtMs, nowMs: nowMs(), clustersPerTick });
  if (ticks.length === 0) return { own: clusters, queued: 0 };

  const deadline = environment.startDeadline(Math.min(QUEUEING_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  try {
    const unsent = await tickQueue.send(ticks, deadline.signal);
    if (unsent.length > 0) {
      telemetry.count('unqueuedTicks', unsent.length);
      const errors = [...new Set(unsent.map(({ error }) => errorSentence(error)))];
      telemetry.log('error', 'ticks not queued', { ticks: unsent.length, errors: someOf(errors) });
    }
    const leftHere = new Set(unsent.flatMap(({ message: { tick, isFirst } }) => (isFirst ? tick.clusters : [])));
    const own = isFleet(clusters, clustersPerTick) ? clusters.filter(({ name }) => leftHere.has(name)) : clusters;
    return { own, queued: ticks.length - unsent.length };
  } finally {
    deadline.cancel();
  }
}
