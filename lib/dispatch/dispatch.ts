import { eachOf } from '../cluster/each-of.ts';
import type { LoopDefinition } from '../loops/pass.ts';
import { CONCURRENT_PASSES, LISTING_MS } from '../runtime/budgets.ts';
import { DispatchError } from '../runtime/errors.ts';
import { type Handler, type Invocation, runInvocation, withinInvocation } from '../runtime/invocation.ts';
import { type Pause, readCluster, readPauseOfAll } from '../table/clusters.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { applyPackage } from './apply-package.ts';
import { readClusterList, type ShortClusterList } from './cluster-list.ts';
import { type DispatchRequest, parseEvent } from './event.ts';
import { reportFleet } from './fleet-figures.ts';
import { logUnstartedPass, someOf } from './log-pass.ts';
import { type Attempt, attemptPass, type Batch, type OpenCluster } from './run-pass.ts';
import { queueTicks, receivedTicks } from './ticks.ts';

/**
 * Returns the handler of a loop's function. One cluster's failure is logged, recorded and part of the summary; only what concerns
 * them all (the event, the environment, the table) fails the invocation.
 */
export function loopHandler(loop: LoopDefinition): Handler<Summary> {
  return (event, context) => runInvocation(loop.id, context, (invocation) => dispatch(loop, event, invocation));
}

/** What an invocation did, for its line in the log. */
interface Outcome {
  readonly attempts: readonly NamedAttempt[];
  /** When what it did was due. */
  readonly dueAtMs?: number;
  /** Messages for later ticks, or for those of others. */
  readonly queued?: number;
}

/**
 * Runs the passes of one loop that an event asks for. Each cluster that is due has its own deadline; none delays another
 * or fails the invocation. A message of the queue never fails it either: the next tick is the retry.
 *
 * @throws DispatchError `BadEvent`, and a `TableError` when the clusters cannot be listed.
 */
export async function dispatch(loop: LoopDefinition, event: unknown, invocation: Invocation): Promise<Summary> {
  const { environment, telemetry } = invocation;
  const beganAtMs = environment.nowMs();
  const request = parseEvent(event);
  const {
    attempts,
    dueAtMs = beganAtMs,
    queued,
  } = await carryOut(loop, request, invocation).catch((error: unknown) => {
    telemetry.count('failures', 1);
    throw error;
  });

  // Also where there was nothing to do: alarms tell health from silence by it.
  telemetry.count('passes', 0);
  telemetry.count('failures', 0);
  const summary = summaryOf(attempts);
  const { paused, unreached, unregistered } = withoutPass(attempts);
  const durationMs = environment.nowMs() - beganAtMs;
  const lateMs = beganAtMs - dueAtMs;
  const level = unreached === undefined ? 'info' : 'error';
  const fields = { ...summary, queued, durationMs, lateMs, paused, unreached, unregistered };
  telemetry.log(level, 'invocation ended', fields);
  return summary;
}

function carryOut(loop: LoopDefinition, request: DispatchRequest, invocation: Invocation): Promise<Outcome> {
  switch (request.kind) {
    case 'schedule':
      return onSchedule(loop, request, invocation);
    case 'queue':
      return onMessages(loop, request, invocation);
    case 'direct':
      return onRequest(loop, request, invocation);
  }
}

/** By then the next minute's has come: after an outage EventBridge delivers every missed one, for a day. */
const STALE_MS = 60_000;

/** The minute's invocation: queues ticks first, so that nothing that hangs here delays them, and then runs its own passes. */
async function onSchedule(
  loop: LoopDefinition,
  { dueAtMs }: DispatchRequest & { readonly kind: 'schedule' },
  invocation: Invocation,
): Promise<Outcome> {
  const lateMs = invocation.environment.nowMs() - dueAtMs;
  if (lateMs > STALE_MS) {
    invocation.telemetry.count('lateTicks', 1);
    invocation.telemetry.log('warn', 'schedule dropped', { lateMs });
    return { attempts: [], dueAtMs };
  }
  const speaksForStack = loop.id === SPEAKS_FOR_STACK && invocation.environment.stack !== undefined;
  let clusterList = await clusterListInTime(invocation);
  if (speaksForStack && (await applyPackage(invocation, clusterList.entries)))
    clusterList = await clusterListInTime(invocation);

  const { own, queued } = await queueTicks(loop.id, clusterList.entries, dueAtMs, invocation);
  const batch: Batch = { loop, force: false, pausedAll: clusterList.pausedAll, ...invocation };
  const attempts = [...logUnusable(batch, clusterList.unreadable), ...(await attemptAll(batch, own, clusterList))];
  if (speaksForStack) await reportFleet(invocation, clusterList);
  return { attempts, dueAtMs, ...(queued > 0 && { queued }) };
}

/** The loop whose function also does what the whole stack needs once a minute: others would only disagree. */
const SPEAKS_FOR_STACK = 'kubernetes-service';

async function onMessages(
  loop: LoopDefinition,
  { bodies }: DispatchRequest & { readonly kind: 'queue' },
  invocation: Invocation,
): Promise<Outcome> {
  const { environment, telemetry } = invocation;
  const { names, dueAtMs } = receivedTicks(loop.id, bodies, environment.nowMs(), telemetry);
  if (names.length === 0) return { attempts: [] };
  const due = { ...(dueAtMs !== undefined && { dueAtMs }) };
  try {
    const pausedAll = await withinInvocation(invocation, LISTING_MS, (signal) =>
      readPauseOfAll(environment.table(signal)),
    );
    const batch: Batch = { loop, force: false, pausedAll, ...invocation };
    return {
      attempts: await attemptAll(
        batch,
        names.map((name) => ({ name })),
      ),
      ...due,
    };
  } catch (error) {
    telemetry.log('error', 'tick failed', { errors: [errorSentence(error)] });
    for (const name of names) logUnstartedPass(telemetry, loop.id, name, error);
    return { attempts: names.map((name) => ({ name, attempt: { outcome: 'failed' } })), ...due };
  }
}

/** A direct invocation: nothing is queued. */
async function onRequest(
  loop: LoopDefinition,
  { clusters: names, force }: DispatchRequest & { readonly kind: 'direct' },
  invocation: Invocation,
): Promise<Outcome> {
  const clusterList = await clusterListInTime(invocation);
  const batch: Batch = { loop, force, pausedAll: clusterList.pausedAll, ...invocation };
  const isRequested = ({ name }: { readonly name: string }) => names === undefined || names.includes(name);
  const broken = clusterList.unreadable.filter(isRequested);
  const found = clusterList.entries.filter(isRequested);
  const known = new Set([...found, ...broken].map(({ name }) => name));
  const unknown = (names ?? []).filter((name) => !known.has(name));
  const unusable = [...broken, ...unknown.map((name) => ({ name, error: notRegistered(name, clusterList) }))];
  return { attempts: [...logUnusable(batch, unusable), ...(await attemptAll(batch, found, clusterList))] };
}

function clusterListInTime(invocation: Invocation): Promise<ShortClusterList> {
  const { table, clustersPerTick = CONCURRENT_PASSES } = invocation.environment;
  return withinInvocation(invocation, LISTING_MS, (signal) => readClusterList(table(signal), clustersPerTick));
}

/** Clusters that no pass can begin for. */
function logUnusable(
  { loop, telemetry }: Batch,
  unusable: readonly { readonly name: string; readonly error: Error }[],
): NamedAttempt[] {
  return unusable.map(({ name, error }) => {
    logUnstartedPass(telemetry, loop.id, name, error);
    return { name, attempt: { outcome: 'failed' } };
  });
}

/** @param clusterList registrations that were read already; the others are read one by one. */
async function attemptAll(
  batch: Batch,
  clusters: readonly { readonly name: string }[],
  clusterList?: Pick<ShortClusterList, 'clusters'>,
): Promise<NamedAttempt[]> {
  const { clustersPerTick = CONCURRENT_PASSES } = batch.environment;
  return eachOf(clusters, clustersPerTick, async ({ name }) => {
    const known = clusterList?.clusters.get(name);
    const open: OpenCluster = async (signal) => known ?? (await readCluster(batch.environment.table(signal), name));
    return { name, attempt: await attemptPass(batch, name, open) };
  });
}

function notRegistered(name: string, { entries }: ShortClusterList): DispatchError {
  const registered = entries.slice(0, 10).map((entry) => entry.name);
  const others = entries.length > registered.length ? ` and ${entries.length - registered.length} more` : '';
  const known = registered.length === 0 ? 'no cluster is' : `registered are ${registered.join(', ')}${others}`;
  return new DispatchError('NotRegistered', `No cluster of the name ${name} is registered in the table: ${known}.`);
}

/** What became of the clusters of one invocation. */
export interface Summary {
  /** Passes that ran, or should have. */
  readonly passes: number;
  /** Those of them that failed. */
  readonly failed: number;
  /** Clusters that were not due, paused, or no longer registered. */
  readonly skipped: number;
}

export interface NamedAttempt {
  readonly name: string;
  readonly attempt: Attempt;
}

type Sentences = readonly string[] | undefined;

function summaryOf(attempts: readonly NamedAttempt[]): Summary {
  const count = (...outcomes: Attempt['outcome'][]) =>
    attempts.filter(({ attempt }) => outcomes.includes(attempt.outcome)).length;
  return {
    passes: count('succeeded', 'failed', 'unreached'),
    failed: count('failed', 'unreached'),
    skipped: count('notDue', 'paused', 'unregistered'),
  };
}

/** Which clusters had no pass although one was due, for the log line. */
function withoutPass(
  attempts: readonly NamedAttempt[],
): Readonly<Record<'paused' | 'unreached' | 'unregistered', Sentences>> {
  const paused = attempts.flatMap(({ name, attempt }) =>
    attempt.outcome === 'paused' ? [sentence(name, attempt.pause)] : [],
  );
  const named = (outcome: Attempt['outcome']) =>
    someOf(attempts.flatMap(({ name, attempt }) => (attempt.outcome === outcome ? [name] : [])));
  return { paused: someOf(paused), unreached: named('unreached'), unregistered: named('unregistered') };
}

function sentence(name: string, { untilMs, by, reason }: Pause): string {
  return `${name} until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}
