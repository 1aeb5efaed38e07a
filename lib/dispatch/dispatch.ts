import { eachOf } from '../cluster/each-of.ts';
import type { LoopDefinition } from '../loops/pass.ts';
import { CLOSING_MS, CONCURRENT_PASSES, LISTING_MS } from '../runtime/budgets.ts';
import { unlessAborted } from '../runtime/deadline.ts';
import { DispatchError } from '../runtime/errors.ts';
import { type Handler, type Invocation, invoked } from '../runtime/invocation.ts';
import { type Pause, readCluster, readPauseOfAll } from '../table/clusters.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { applyPackage } from './apply-package.ts';
import { type Roster, readRoster } from './cluster-list.ts';
import { type Asked, parseEvent } from './event.ts';
import { reportFleet } from './fleet-figures.ts';
import { logUnstartedPass, someOf } from './log-pass.ts';
import { type OpenCluster, type Round, type Visit, visitCluster } from './run-pass.ts';
import { queueTicks, receivedTicks } from './ticks.ts';

/**
 * The handler of a loop's function. One cluster's failure is logged, recorded and part of the summary; only what concerns
 * them all (the event, the environment, the table) fails the invocation.
 */
export function scheduled(loop: LoopDefinition): Handler<Summary> {
  return (event, context) => invoked(loop.id, context, (invocation) => dispatch(loop, event, invocation));
}

/** What an invocation came to, for its line in the log. */
interface Done {
  readonly visits: readonly NamedVisit[];
  /** When what it did was due. */
  readonly dueAtMs?: number;
  /** Messages for later ticks, or for those of others. */
  readonly queued?: number;
}

/**
 * From an event to the passes of one loop: every cluster that is due has its own deadline, and none holds up another
 * or fails the invocation. What comes from a queue never fails it: a message is done with whatever becomes of it.
 *
 * @throws DispatchError `BadEvent`, and a `TableError` when the clusters cannot be listed.
 */
export async function dispatch(loop: LoopDefinition, event: unknown, invocation: Invocation): Promise<Summary> {
  const { environment, telemetry } = invocation;
  const beganAtMs = environment.nowMs();
  const asked = parseEvent(event);
  const {
    visits,
    dueAtMs = beganAtMs,
    queued,
  } = await carryOut(loop, asked, invocation).catch((error: unknown) => {
    telemetry.count('failures', 1);
    throw error;
  });

  // Also where there was nothing to do: that it ran is what tells health from silence.
  telemetry.count('passes', 0);
  telemetry.count('failures', 0);
  const summary = summaryOf(visits);
  const { paused, unreached, unregistered } = withoutPass(visits);
  const durationMs = environment.nowMs() - beganAtMs;
  const lateMs = beganAtMs - dueAtMs;
  const level = unreached === undefined ? 'info' : 'error';
  const fields = { ...summary, queued, durationMs, lateMs, paused, unreached, unregistered };
  telemetry.log(level, 'invocation ended', fields);
  return summary;
}

function carryOut(loop: LoopDefinition, asked: Asked, invocation: Invocation): Promise<Done> {
  switch (asked.kind) {
    case 'schedule':
      return onSchedule(loop, asked, invocation);
    case 'queue':
      return onMessages(loop, asked, invocation);
    case 'direct':
      return onRequest(loop, asked, invocation);
  }
}

/** By then the next minute's has come: after an outage EventBridge delivers every missed one, for a day. */
const STALE_MS = 60_000;

/** The minute's invocation: hands out ticks first, so that nothing that hangs here delays them, and then does its own. */
async function onSchedule(
  loop: LoopDefinition,
  { dueAtMs }: Asked & { readonly kind: 'schedule' },
  invocation: Invocation,
): Promise<Done> {
  const lateMs = invocation.environment.nowMs() - dueAtMs;
  if (lateMs > STALE_MS) {
    invocation.telemetry.count('lateTicks', 1);
    invocation.telemetry.log('warn', 'schedule dropped', { lateMs });
    return { visits: [], dueAtMs };
  }
  const speaksForStack = loop.id === SPEAKS_FOR_STACK && invocation.environment.stack !== undefined;
  let roster = await rosterInTime(invocation);
  if (speaksForStack && (await applyPackage(invocation, roster.entries))) roster = await rosterInTime(invocation);

  const { own, queued } = await queueTicks(loop.id, roster.entries, dueAtMs, invocation);
  const round: Round = { loop, force: false, pausedAll: roster.pausedAll, ...invocation };
  const visits = [...tellUnusable(round, roster.unreadable), ...(await visitAll(round, own, roster))];
  if (speaksForStack) await reportFleet(invocation, roster);
  return { visits, dueAtMs, ...(queued > 0 && { queued }) };
}

/** The loop whose function also does what is to be done once a minute for the whole stack: others would only disagree. */
const SPEAKS_FOR_STACK = 'kubernetes-service';

async function onMessages(
  loop: LoopDefinition,
  { bodies }: Asked & { readonly kind: 'queue' },
  invocation: Invocation,
): Promise<Done> {
  const { environment, telemetry } = invocation;
  const { names, dueAtMs } = receivedTicks(loop.id, bodies, environment.nowMs(), telemetry);
  if (names.length === 0) return { visits: [] };
  const due = { ...(dueAtMs !== undefined && { dueAtMs }) };
  try {
    const pausedAll = await listInTime(invocation, (signal) => readPauseOfAll(environment.table(signal)));
    const round: Round = { loop, force: false, pausedAll, ...invocation };
    return {
      visits: await visitAll(
        round,
        names.map((name) => ({ name })),
      ),
      ...due,
    };
  } catch (error) {
    telemetry.log('error', 'tick failed', { errors: [errorSentence(error)] });
    for (const name of names) logUnstartedPass(telemetry, loop.id, name, error);
    return { visits: names.map((name) => ({ name, visit: { outcome: 'failed' } })), ...due };
  }
}

/** Somebody's own call: nothing is queued. */
async function onRequest(
  loop: LoopDefinition,
  { clusters: names, force }: Asked & { readonly kind: 'direct' },
  invocation: Invocation,
): Promise<Done> {
  const roster = await rosterInTime(invocation);
  const round: Round = { loop, force, pausedAll: roster.pausedAll, ...invocation };
  const isAsked = ({ name }: { readonly name: string }) => names === undefined || names.includes(name);
  const broken = roster.unreadable.filter(isAsked);
  const found = roster.entries.filter(isAsked);
  const known = new Set([...found, ...broken].map(({ name }) => name));
  const unknown = (names ?? []).filter((name) => !known.has(name));
  const unusable = [...broken, ...unknown.map((name) => ({ name, error: notRegistered(name, roster) }))];
  return { visits: [...tellUnusable(round, unusable), ...(await visitAll(round, found, roster))] };
}

function rosterInTime(invocation: Invocation): Promise<Roster> {
  const { table, clustersPerTick = CONCURRENT_PASSES } = invocation.environment;
  return listInTime(invocation, (signal) => readRoster(table(signal), clustersPerTick));
}

async function listInTime<Listed>(
  { environment, remainingMs }: Invocation,
  read: (signal: AbortSignal) => Promise<Listed>,
): Promise<Listed> {
  const deadline = environment.startDeadline(Math.min(LISTING_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  try {
    return await unlessAborted(deadline.signal, () => read(deadline.signal));
  } finally {
    deadline.cancel();
  }
}

/** Clusters that no pass can begin for. */
function tellUnusable(
  { loop, telemetry }: Round,
  unusable: readonly { readonly name: string; readonly error: Error }[],
): NamedVisit[] {
  return unusable.map(({ name, error }) => {
    logUnstartedPass(telemetry, loop.id, name, error);
    return { name, visit: { outcome: 'failed' } };
  });
}

/** @param roster what is known of them already; the others are read one by one. */
async function visitAll(
  round: Round,
  clusters: readonly { readonly name: string }[],
  roster?: Pick<Roster, 'clusters'>,
): Promise<NamedVisit[]> {
  const { clustersPerTick = CONCURRENT_PASSES } = round.environment;
  return eachOf(clusters, clustersPerTick, async ({ name }) => {
    const known = roster?.clusters.get(name);
    const open: OpenCluster = async (signal) => known ?? (await readCluster(round.environment.table(signal), name));
    return { name, visit: await visitCluster(round, name, open) };
  });
}

function notRegistered(name: string, { entries }: Roster): DispatchError {
  const registered = entries.slice(0, 10).map((entry) => entry.name);
  const others = entries.length > registered.length ? ` and ${entries.length - registered.length} more` : '';
  const known = registered.length === 0 ? 'no cluster is' : `registered are ${registered.join(', ')}${others}`;
  return new DispatchError('NotRegistered', `No cluster of the name ${name} is registered in the table: ${known}.`);
}

/** What became of the clusters that one invocation was for. */
export interface Summary {
  /** Passes that ran, or should have. */
  readonly passes: number;
  /** Those of them that failed. */
  readonly failed: number;
  /** Clusters that were not due, paused, or no longer registered. */
  readonly skipped: number;
}

export interface NamedVisit {
  readonly name: string;
  readonly visit: Visit;
}

type Sentences = readonly string[] | undefined;

function summaryOf(visits: readonly NamedVisit[]): Summary {
  const count = (...outcomes: Visit['outcome'][]) =>
    visits.filter(({ visit }) => outcomes.includes(visit.outcome)).length;
  return {
    passes: count('succeeded', 'failed', 'unreached'),
    failed: count('failed', 'unreached'),
    skipped: count('notDue', 'paused', 'unregistered'),
  };
}

/** Which clusters had no pass although one was due, for the log line. */
function withoutPass(
  visits: readonly NamedVisit[],
): Readonly<Record<'paused' | 'unreached' | 'unregistered', Sentences>> {
  const paused = visits.flatMap(({ name, visit }) => (visit.outcome === 'paused' ? [sentence(name, visit.pause)] : []));
  const named = (outcome: Visit['outcome']) =>
    someOf(visits.flatMap(({ name, visit }) => (visit.outcome === outcome ? [name] : [])));
  return { paused: someOf(paused), unreached: named('unreached'), unregistered: named('unregistered') };
}

function sentence(name: string, { untilMs, by, reason }: Pause): string {
  return `${name} until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}
