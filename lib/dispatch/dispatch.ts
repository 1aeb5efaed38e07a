import type { LoopDefinition } from '../loops/pass.ts';
import { DispatchError, LISTING_MS, pause, withinInvocation } from '../runtime/deadline.ts';
import { type Handler, runInvocation } from '../runtime/invocation.ts';
import { STACK_LOOP } from '../spec/cluster-spec.ts';
import { readPauseOfAll } from '../table/clusters.ts';
import { TableError } from '../table/key-value-table.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { isoTime } from '../util/values.ts';
import { type Attempt, attemptAll, attemptApart, type Batch } from './attempt.ts';
import { listPausesMs, readClusterList, type ShortClusterList } from './cluster-list.ts';
import { type DispatchRequest, parseEvent, type ReceivedMessage, receivedTicks, type TickMessage } from './event.ts';
import { reportFleet, reportNamed } from './fleet-figures.ts';
import { logUnstartedPass, someOf } from './report-pass.ts';
import type { LoopInvocation } from './run-pass.ts';
import { clustersApart, containAccident, proveSuspects } from './suspects.ts';
import { followingTick, NONE_APART, queueTicks, sendTicks } from './ticks.ts';

export function loopHandler(loop: LoopDefinition): Handler<Summary> {
  const memory: LoopInvocation['memory'] = {};
  return (event, context) =>
    runInvocation(loop.id, context, (invocation) => dispatch({ ...invocation, loop, memory }, event));
}

/**
 * Runs the passes of one loop for an event. A cluster that fails or hangs neither fails the invocation nor delays other clusters.
 * @throws DispatchError `BadEvent`; DispatchError or TableError if the clusters cannot be listed and no earlier list can be used
 */
export async function dispatch(invocation: LoopInvocation, event: unknown): Promise<Summary> {
  const { environment, telemetry } = invocation;
  const beganAtMs = environment.nowMs();
  const request = parseEvent(event);
  const outcome = await carryOut(invocation, request).catch((error: unknown) => {
    telemetry.count('failures', 1);
    throw error;
  });
  const { attempts, dueAtMs = beganAtMs, queued } = outcome;

  // Adds 0 even if there was nothing to do, so that alarms can distinguish a healthy loop from a stopped loop.
  telemetry.count('passes', 0);
  telemetry.count('failures', 0);
  const { summary, withoutPass } = summaryOf(attempts);
  const times = { durationMs: environment.nowMs() - beganAtMs, lateMs: beganAtMs - dueAtMs };
  const level = withoutPass.unreached === undefined ? 'info' : 'error';
  telemetry.log(level, 'invocation ended', { ...summary, queued: queued || undefined, ...times, ...withoutPass });
  return summary;
}

interface Outcome {
  readonly attempts: readonly Attempt[];
  readonly dueAtMs?: number;
  readonly queued?: number;
}

function carryOut(invocation: LoopInvocation, request: DispatchRequest): Promise<Outcome> {
  if (request.kind === 'schedule') return onSchedule(invocation, request.dueAtMs);
  return request.kind === 'queue' ? onMessages(invocation, request.messages) : onRequest(invocation, request);
}

/** The greatest age of a scheduled event. Older ones are dropped: after an outage, EventBridge delivers all missed events. */
const STALE_MS = 60_000;

/** Queues the ticks of the minute first, because a pass may hang. Then runs the passes of this invocation. */
async function onSchedule(invocation: LoopInvocation, dueAtMs: number): Promise<Outcome> {
  const { loop, environment, telemetry } = invocation;
  const lateMs = environment.nowMs() - dueAtMs;
  if (lateMs > STALE_MS) {
    telemetry.count('lateTicks', 1);
    telemetry.log('warn', 'schedule dropped', { lateMs });
    return { attempts: [], dueAtMs };
  }
  const list = await listOfMinute(invocation);
  const apart = await clustersApart(invocation);
  const { own, queued } = await queueTicks(invocation, list.entries, dueAtMs, apart);
  const batch: Batch = { ...invocation, force: false, pausedAll: list.pausedAll };
  const ran = await attemptApart(batch, own, apart);
  const attempts = [...logUnusable(batch, list.unreadable), ...ran];
  if (environment.stack !== undefined && loop.id === STACK_LOOP) await reportFleet(invocation, list);
  return { attempts, dueAtMs, queued };
}

/** The greatest age of a remembered list. An older list may differ too much from the current registrations. */
const OLDEST_LIST_MS = 15 * 60_000;

/** Reads the cluster list. If the table fails for a short time, returns the last list, so that the minute's passes still run. */
async function listOfMinute(invocation: LoopInvocation): Promise<ShortClusterList> {
  const { environment, telemetry, memory } = invocation;
  try {
    const list = await listInTime(invocation);
    memory.last = { list, readAtMs: environment.nowMs() };
    return list;
  } catch (error) {
    const { last } = memory;
    const ageMs = environment.nowMs() - (last?.readAtMs ?? 0);
    if (last === undefined || ageMs > OLDEST_LIST_MS) throw error;
    if (environment.tickQueue === undefined || !isPassing(error)) throw error;
    telemetry.count('staleClusterLists', 1);
    const fields = { ageMs, errors: [errorSentence(error)] };
    telemetry.log('error', 'cluster list not read: the last one is used', fields);
    return last.list;
  }
}

/** Returns whether the error is temporary. An error about the content of a table item is not. */
function isPassing(error: unknown): boolean {
  const code = error instanceof TableError || error instanceof DispatchError ? error.code : undefined;
  return code === 'Unavailable' || code === 'Throttled' || code === 'DeadlineExceeded';
}

/** Runs the passes of the received ticks. Never throws, because the next tick retries. */
async function onMessages(invocation: LoopInvocation, messages: readonly ReceivedMessage[]): Promise<Outcome> {
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
    return { attempts, queued, ...due };
  } catch (error) {
    telemetry.log('error', 'tick failed', { errors: [errorSentence(error)] });
    const failed = names.map((name) => ({ name, error }));
    return { attempts: logUnusable(invocation, failed), ...due };
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

async function onRequest(
  invocation: LoopInvocation,
  { clusters: names, force }: DispatchRequest & { readonly kind: 'direct' },
): Promise<Outcome> {
  const list = await listInTime(invocation);
  const batch: Batch = { ...invocation, force, pausedAll: list.pausedAll };
  const isRequested = ({ name }: { readonly name: string }) => names === undefined || names.includes(name);
  const broken = list.unreadable.filter(isRequested);
  const found = list.entries.filter(isRequested).map(({ name }) => name);
  const known = new Set([...list.entries, ...broken].map(({ name }) => name));
  const unknown = (names ?? []).filter((name) => !known.has(name));
  const unusable = [...broken, ...unknown.map((name) => ({ name, error: notRegistered(name) }))];
  const apart = await clustersApart(invocation);
  return { attempts: [...logUnusable(batch, unusable), ...(await attemptApart(batch, found, apart))] };
}

function listInTime(invocation: LoopInvocation): Promise<ShortClusterList> {
  const { loop, environment } = invocation;
  const { table, startDeadline } = environment;
  return withinInvocation(invocation, LISTING_MS + listPausesMs(loop.id), (signal) =>
    readClusterList(table(signal), loop.id, (ms) => pause(startDeadline(ms), signal)),
  );
}

function logUnusable(
  { loop, telemetry }: LoopInvocation,
  unusable: readonly { readonly name: string; readonly error: unknown }[],
): Attempt[] {
  return unusable.map(({ name, error }) => {
    logUnstartedPass(telemetry, loop.id, name, error);
    return { name, outcome: 'failed' };
  });
}

function notRegistered(name: string): DispatchError {
  const message = `Cluster ${name} is not registered in the table: kbctl status lists the registered clusters.`;
  return new DispatchError('NotRegistered', message);
}

export interface Summary {
  /** The number of passes that ran, or that could not begin. */
  readonly passes: number;
  readonly failed: number;
  /** The number of clusters that were not due, were paused, or are no longer registered. */
  readonly skipped: number;
}

/** Returns the summary and, for the log line, the clusters that were paused, not reached, or are no longer registered. */
function summaryOf(attempts: readonly Attempt[]) {
  const namesOf = (...outcomes: readonly Attempt['outcome'][]) =>
    attempts.flatMap(({ name, outcome }) => (outcomes.includes(outcome) ? [name] : []));
  const summary: Summary = {
    passes: namesOf('succeeded', 'failed', 'unreached').length,
    failed: namesOf('failed', 'unreached').length,
    skipped: namesOf('notDue', 'paused', 'unregistered').length,
  };
  const paused = attempts.flatMap((one) => {
    if (one.outcome !== 'paused') return [];
    const { untilMs, by, reason } = one.pause;
    return [`${one.name} until ${isoTime(untilMs)} by ${by}: ${reason}`];
  });
  const [unreached, unregistered] = [someOf(namesOf('unreached')), someOf(namesOf('unregistered'))];
  return { summary, withoutPass: { paused: someOf(paused), unreached, unregistered } };
}
