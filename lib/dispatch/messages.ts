import { LISTING_MS, withinInvocation } from '../runtime/deadline.ts';
import { readPauseOfAll } from '../table/clusters.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { type Attempt, attemptAll } from './attempt.ts';
import { type ReceivedMessage, receivedTicks, type TickMessage } from './event.ts';
import { reportNamed } from './fleet-figures.ts';
import { logUnstartedPass } from './report-pass.ts';
import type { LoopInvocation } from './run-pass.ts';
import { containAccident, proveSuspects } from './suspects.ts';
import { followingTick, NONE_APART, queueTicks, sendTicks } from './ticks.ts';

export interface Outcome {
  readonly attempts: readonly Attempt[];
  readonly dueAtMs?: number;
  readonly queued?: number;
}

/** Runs the passes of the received ticks. Never throws, because the next tick retries. */
export async function onMessages(invocation: LoopInvocation, messages: readonly ReceivedMessage[]): Promise<Outcome> {
  const { loop, environment, telemetry } = invocation;
  const { ticks, interrupted, counted } = receivedTicks(loop.id, messages, environment.nowMs(), telemetry);
  for (const { dueAtMs: atMs, clusters, followedUntilMs } of interrupted) {
    const accident = { atMs, clusters, ofSuspects: followedUntilMs !== undefined };
    await containAccident(invocation, accident, 'the process ended before its passes did');
  }
  if (counted.length > 0) await reportNamed(invocation, counted);
  if (ticks.length === 0) return { attempts: [] };
  const names = [...new Set(ticks.flatMap(({ clusters }) => clusters))];
  const due = { dueAtMs: Math.min(...ticks.map(({ dueAtMs }) => dueAtMs)) };
  try {
    const pausedAll = await withinInvocation(invocation, LISTING_MS, (signal) =>
      readPauseOfAll(environment.table(signal)),
    );
    const ofSuspects = ticks.some(({ followedUntilMs }) => followedUntilMs !== undefined);
    const attempts = await attemptAll({ ...invocation, force: false, pausedAll }, names, ofSuspects);
    const queued = await queueNext(invocation, ticks, attempts);
    return { attempts, ...(queued > 0 && { queued }), ...due };
  } catch (error) {
    telemetry.log('error', 'tick failed', { errors: [errorSentence(error)] });
    for (const name of names) logUnstartedPass(telemetry, loop.id, name, error);
    return { attempts: names.map((name) => ({ name, outcome: 'failed' })), ...due };
  }
}

/** Queues the next tick of suspect clusters and, for clusters that answer again, the remaining ticks of this minute. */
async function queueNext(
  invocation: LoopInvocation,
  ticks: readonly TickMessage[],
  attempts: readonly Attempt[],
): Promise<number> {
  const nowMs = invocation.environment.nowMs();
  const suspects = new Set(ticks.flatMap(({ followedUntilMs, clusters }) => (followedUntilMs ? clusters : [])));
  await proveSuspects(invocation, [...suspects]);
  const following = ticks.flatMap((tick) => followingTick(tick, nowMs));
  const unsent = await sendTicks(following, invocation);
  const resumed = attempts.flatMap((one) => ('resumed' in one && !suspects.has(one.name) ? [one.resumed] : []));
  const { queued } = await queueTicks(invocation, resumed, nowMs, NONE_APART);
  return following.length - unsent.length + queued;
}
