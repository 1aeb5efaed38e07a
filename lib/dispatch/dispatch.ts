import { eachOf } from '../cluster/each-of.ts';
import type { LoopDefinition } from '../loops/pass.ts';
import { CONCURRENT_PASSES, LISTING_MS } from '../runtime/budgets.ts';
import { DispatchError } from '../runtime/errors.ts';
import { type Handler, type Invocation, runInvocation, withinInvocation } from '../runtime/invocation.ts';
import { type Pause, type RegisteredCluster, readCluster, readPauseOfAll } from '../table/clusters.ts';
import { TableError } from '../table/errors.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { ClusterListMemory, readClusterList, type ShortClusterList } from './cluster-list.ts';
import { type DispatchRequest, parseEvent } from './event.ts';
import { reportFleet, unreachableClusters } from './fleet-figures.ts';
import { logUnstartedPass, someOf } from './log-pass.ts';
import { type Attempt, attemptPass, type Batch, type OpenCluster } from './run-pass.ts';
import { queueTicks, receivedTicks } from './ticks.ts';

/**
 * Returns the handler of a loop's function. One cluster's failure is logged, recorded and part of the summary; only what concerns
 * them all (the event, the environment, the table) fails the invocation.
 */
export function loopHandler(loop: LoopDefinition): Handler<Summary> {
  const memory = new ClusterListMemory();
  return (event, context) => runInvocation(loop.id, context, (invocation) => dispatch(loop, event, invocation, memory));
}

/** What an invocation did, for its line in the log. */
interface Outcome {
  readonly attempts: readonly NamedAttempt[];
  /** When what it did was due. */
  readonly dueAtMs?: number;
  readonly queued?: number;
}

/**
 * Runs the passes of one loop that an event asks for. Each cluster that is due has its own deadline; none delays another
 * or fails the invocation. A message of the queue never fails it either: the next tick is the retry.
 *
 * @throws DispatchError `BadEvent`, and a `TableError` when the clusters cannot be listed and no list is remembered.
 */
export async function dispatch(
  loop: LoopDefinition,
  event: unknown,
  invocation: Invocation,
  memory = new ClusterListMemory(),
): Promise<Summary> {
  const { environment, telemetry } = invocation;
  const beganAtMs = environment.nowMs();
  const request = parseEvent(event);
  const {
    attempts,
    dueAtMs = beganAtMs,
    queued,
  } = await carryOut({ loop, ...invocation, memory }, request).catch((error: unknown) => {
    telemetry.count('failures', 1);
    throw error;
  });

  // Also where there was nothing to do: alarms distinguish health from silence by it.
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

interface LoopInvocation extends Invocation {
  readonly loop: LoopDefinition;
  readonly memory: ClusterListMemory;
}

function carryOut(invocation: LoopInvocation, request: DispatchRequest): Promise<Outcome> {
  switch (request.kind) {
    case 'schedule':
      return onSchedule(invocation, request.dueAtMs);
    case 'queue':
      return onMessages(invocation, request.bodies);
    case 'direct':
      return onRequest(invocation, request);
  }
}

/** By then the next minute's event has come: after an outage EventBridge delivers every missed one. */
const STALE_MS = 60_000;

/** The minute's invocation: queues ticks first, so that nothing that hangs here delays them, and then runs its own passes. */
async function onSchedule(invocation: LoopInvocation, dueAtMs: number): Promise<Outcome> {
  const { loop, environment, telemetry } = invocation;
  const lateMs = environment.nowMs() - dueAtMs;
  if (lateMs > STALE_MS) {
    telemetry.count('lateTicks', 1);
    telemetry.log('warn', 'schedule dropped', { lateMs });
    return { attempts: [], dueAtMs };
  }
  const speaksForStack = loop.id === SPEAKS_FOR_STACK && environment.stack !== undefined;
  const list = await listOfMinute(invocation);
  const unreachable = await unreachableClusters(invocation);
  const { own, queued } = await queueTicks(loop.id, list.entries, { dueAtMs, unreachable }, invocation);
  const batch: Batch = { ...invocation, force: false, pausedAll: list.pausedAll };
  const attempts = [...logUnusable(batch, list.unreadable), ...(await attemptAll(batch, own, list.clusters))];
  if (speaksForStack) await reportFleet(invocation, list);
  return { attempts, dueAtMs, ...(queued > 0 && { queued }) };
}

/** The loop whose function also does what the whole stack needs once a minute: others would only disagree. */
const SPEAKS_FOR_STACK = 'kubernetes-service';

/** Reads the cluster list; or returns the last one, rather than lose the minute. */
async function listOfMinute(invocation: LoopInvocation): Promise<ShortClusterList> {
  const { environment, telemetry, memory } = invocation;
  try {
    const list = await listInTime(invocation);
    memory.keep(list, environment.nowMs());
    return list;
  } catch (error) {
    const last = memory.last(environment.nowMs());
    if (last === undefined || environment.tickQueue === undefined || !isPassing(error)) throw error;
    telemetry.count('staleClusterLists', 1);
    telemetry.log('error', 'cluster list not read: the last one is used', {
      ageMs: last.ageMs,
      errors: [errorSentence(error)],
    });
    return last.list;
  }
}

/** Whether the table may have recovered when the ticks of this minute run. An error about its content does not pass. */
function isPassing(error: unknown): boolean {
  const code = error instanceof TableError || error instanceof DispatchError ? error.code : undefined;
  return code === 'Unavailable' || code === 'Throttled' || code === 'DeadlineExceeded';
}

async function onMessages(invocation: LoopInvocation, bodies: readonly string[]): Promise<Outcome> {
  const { loop, environment, telemetry } = invocation;
  const { names, dueAtMs } = receivedTicks(loop.id, bodies, environment.nowMs(), telemetry);
  if (names.length === 0) return { attempts: [] };
  const due = { ...(dueAtMs !== undefined && { dueAtMs }) };
  try {
    const pausedAll = await withinInvocation(invocation, LISTING_MS, (signal) =>
      readPauseOfAll(environment.table(signal)),
    );
    const clusters = names.map((name) => ({ name }));
    const attempts = await attemptAll({ ...invocation, force: false, pausedAll }, clusters);
    return { attempts, ...(await resumeTicks(invocation, attempts)), ...due };
  } catch (error) {
    telemetry.log('error', 'tick failed', { errors: [errorSentence(error)] });
    for (const name of names) logUnstartedPass(telemetry, loop.id, name, error);
    return { attempts: names.map((name) => ({ name, attempt: { outcome: 'failed' } })), ...due };
  }
}

/** Queues the ticks of the next minute for clusters that answer again: the minute's invocation knows of them only then. */
async function resumeTicks(
  invocation: LoopInvocation,
  attempts: readonly NamedAttempt[],
): Promise<Pick<Outcome, 'queued'>> {
  const resumed = attempts.flatMap(({ attempt }) => ('resumed' in attempt ? [attempt.resumed] : []));
  if (resumed.length === 0) return {};
  const dueAtMs = invocation.environment.nowMs();
  const { queued } = await queueTicks(invocation.loop.id, resumed, { dueAtMs }, invocation);
  return { queued };
}

/** A direct invocation: nothing is queued. */
async function onRequest(
  invocation: LoopInvocation,
  { clusters: names, force }: DispatchRequest & { readonly kind: 'direct' },
): Promise<Outcome> {
  const list = await listInTime(invocation);
  const batch: Batch = { ...invocation, force, pausedAll: list.pausedAll };
  const isRequested = ({ name }: { readonly name: string }) => names === undefined || names.includes(name);
  const broken = list.unreadable.filter(isRequested);
  const found = list.entries.filter(isRequested);
  const known = new Set([...found, ...broken].map(({ name }) => name));
  const unknown = (names ?? []).filter((name) => !known.has(name));
  const unusable = [...broken, ...unknown.map((name) => ({ name, error: notRegistered(name, list) }))];
  return { attempts: [...logUnusable(batch, unusable), ...(await attemptAll(batch, found, list.clusters))] };
}

function listInTime(invocation: LoopInvocation): Promise<ShortClusterList> {
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

/** @param known registrations that were read already; the others are read one by one. */
async function attemptAll(
  batch: Batch,
  clusters: readonly { readonly name: string }[],
  known?: ReadonlyMap<string, RegisteredCluster>,
): Promise<NamedAttempt[]> {
  const { table, clustersPerTick = CONCURRENT_PASSES } = batch.environment;
  return eachOf(clusters, clustersPerTick, async ({ name }) => {
    const open: OpenCluster = async (signal) => known?.get(name) ?? (await readCluster(table(signal), name));
    return { name, attempt: await attemptPass(batch, name, open) };
  });
}

function notRegistered(name: string, { entries }: ShortClusterList): DispatchError {
  const registered = entries.slice(0, 10).map((entry) => entry.name);
  const others = entries.length > registered.length ? ` and ${entries.length - registered.length} more` : '';
  const known = registered.length === 0 ? 'no cluster is' : `registered are ${registered.join(', ')}${others}`;
  return new DispatchError('NotRegistered', `Cluster ${name} is not registered in the table: ${known}.`);
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
