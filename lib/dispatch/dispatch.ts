import type { LoopDefinition } from '../loops/pass.ts';
import { readCluster, readPauseOfAll } from '../table/clusters.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { applyPackage } from './apply-package.ts';
import { CLOSING_MS, CONCURRENT_PASSES, LISTING_MS } from './budgets.ts';
import { concurrently } from './concurrently.ts';
import { unlessAborted } from './deadline.ts';
import { DispatchError } from './errors.ts';
import { type Asked, parseEvent } from './event.ts';
import { reportFleet } from './fleet-figures.ts';
import type { Invocation } from './invoked.ts';
import { logUnstartedPass } from './log-pass.ts';
import { type Roster, readRoster } from './roster.ts';
import { type NamedVisit, type Summary, summaryOf, withoutPass } from './summary.ts';
import { queueTicks, receivedTicks } from './ticks.ts';
import { type OpenCluster, type Round, visitCluster } from './visit-cluster.ts';

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
  const visits: NamedVisit[] = [];
  await concurrently(clusters, clustersPerTick, async ({ name }) => {
    const known = roster?.clusters.get(name);
    const open: OpenCluster = async (signal) => known ?? (await readCluster(round.environment.table(signal), name));
    visits.push({ name, visit: await visitCluster(round, name, open) });
  });
  return visits;
}

function notRegistered(name: string, { entries }: Roster): DispatchError {
  const registered = entries.slice(0, 10).map((entry) => entry.name);
  const others = entries.length > registered.length ? ` and ${entries.length - registered.length} more` : '';
  const known = registered.length === 0 ? 'no cluster is' : `registered are ${registered.join(', ')}${others}`;
  return new DispatchError('NotRegistered', `No cluster of the name ${name} is registered in the table: ${known}.`);
}
