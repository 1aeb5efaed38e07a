import { randomUUID } from 'node:crypto';
import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import { LOOP_HANDLERS } from '../lib/dispatch/loop-handlers.ts';
import type { Environment } from '../lib/runtime/environment.ts';
import type { Job } from './clock-driven-runner.ts';

/** As long as a schedule's invocation may take. */
const INVOCATION_MS = 60_000;

/**
 * The handlers of the loops, as often as their schedules have it, or the spec where that is more often.
 * @param counted is told when an invocation begins, and when it ends
 */
export function loopJobs(
  environment: Environment,
  { intervalSeconds }: Pick<ClusterSpec, 'intervalSeconds'>,
  counted: (by: 1 | -1) => void = () => undefined,
): Job[] {
  const { nowMs } = environment;
  const begun = new Set<Loop>();
  return (Object.entries(LOOP_HANDLERS) as [Loop, (typeof LOOP_HANDLERS)[Loop]][]).map(([id, handler]) => ({
    id,
    everyMs: Math.min(SCHEDULE_SECONDS[id], intervalSeconds[id]) * 1000,
    invoke: async (tickMs) => {
      // Who starts it wants to see it run, also when its last run has only just ended.
      const event = begun.has(id) ? scheduledEvent(tickMs) : { force: true };
      begun.add(id);
      const endMs = nowMs() + INVOCATION_MS;
      const context = { environment, awsRequestId: randomUUID(), getRemainingTimeInMillis: () => endMs - nowMs() };
      counted(1);
      // What fails an invocation it has told itself; the next tick tries again.
      await handler(event, context).catch(() => undefined);
      counted(-1);
    },
  }));
}

function scheduledEvent(tickMs: number): object {
  return { 'detail-type': 'Scheduled Event', time: `${new Date(tickMs).toISOString().slice(0, 19)}Z` };
}
