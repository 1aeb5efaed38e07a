import { type ClusterSpec, STACK_LOOP } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ClusterPort, Prober } from '../kubernetes/cluster-port.ts';
import { planEvents } from '../kubernetes/events.ts';
import { type EventsReport, writeEvents } from '../kubernetes/write-events.ts';
import type { LoopDefinition, PassContext } from '../loops/pass.ts';
import { OlderSpecError, portsFor, type Writes, writesOf } from '../loops/writes.ts';
import { CLOSING_MS, PASS_BUDGET_MS, RECORDING_MS } from '../runtime/budgets.ts';
import { pause, unlessAborted, withDeadline, withinDeadline } from '../runtime/deadline.ts';
import type { ClusterAccess, Environment } from '../runtime/environment.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { claimCluster } from '../table/cluster-registration.ts';
import { otherOwner, type Pause, type RegisteredCluster, readCluster, readPauseOfAll } from '../table/clusters.ts';
import { writeUnreachable } from '../table/fleet-notes.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type ReadRunRecord, type RunRecord, readRunRecord } from '../table/run-records.ts';
import { addressLookUp } from './address-look-up.ts';
import { changesOf, publishChanges } from './cluster-events.ts';
import { isDue, isUnreachable, isWithoutAnswer, pauseInForce, spacingMs } from './due.ts';
import { countPass, logPass, logUnstartedPass } from './log-pass.ts';
import { type EndedPass, isSameAsRecorded, previousMode, recordPass } from './record-pass.ts';

/** An invocation of one loop's function. */
export interface LoopInvocation extends Invocation {
  readonly loop: LoopDefinition;
}

/** The values that all attempts of one invocation share. */
export interface Batch extends LoopInvocation {
  /** Passes run although their interval is not over. */
  readonly force: boolean;
  readonly pausedAll: Pause | undefined;
}

export type Attempt =
  | { readonly outcome: 'notDue' }
  /** `resumed`: the cluster answers again. */
  | { readonly outcome: 'succeeded' | 'failed'; readonly resumed?: ClusterSpec }
  | { readonly outcome: 'paused'; readonly pause: Pause }
  | { readonly outcome: 'unregistered' }
  /** The function's time was over before the pass could begin. */
  | { readonly outcome: 'unreached' };

/** Reads a cluster's registration, within the time of its pass. */
export type OpenCluster = (signal: AbortSignal) => Promise<RegisteredCluster | undefined>;

/** Runs the loop's pass for one cluster, if it is due, within its own deadline. Never throws. */
export async function attemptPass(batch: Batch, name: string, open: OpenCluster): Promise<Attempt> {
  const { loop, environment, telemetry, remainingMs } = batch;
  const startedAtMs = environment.nowMs();
  const budgetMs = Math.min(PASS_BUDGET_MS[loop.id], remainingMs() - CLOSING_MS);
  if (budgetMs <= 0) {
    countPass(telemetry, loop.id, true);
    return { outcome: 'unreached' };
  }

  try {
    return await withDeadline(environment, budgetMs, async (signal) => {
      const cluster = await unlessAborted(signal, () => open(signal));
      if (cluster === undefined) return { outcome: 'unregistered' };
      const pause = pauseInForce([batch.pausedAll, cluster.paused], startedAtMs);
      if (pause !== undefined) return { outcome: 'paused', pause };
      return passIfDue(batch, cluster, startedAtMs, signal);
    });
  } catch (error) {
    logUnstartedPass(telemetry, loop.id, name, error);
    return { outcome: 'failed' };
  }
}

async function passIfDue(
  batch: Batch,
  cluster: RegisteredCluster,
  startedAtMs: number,
  signal: AbortSignal,
): Promise<Attempt> {
  const { loop, force, environment, telemetry } = batch;
  const { name } = cluster.spec;
  if (waitsForOwner(batch, cluster)) return { outcome: 'notDue' };
  const [owner, last] = await unlessAborted(signal, () =>
    Promise.all([ownerOf(batch, cluster, signal), readRunRecord(environment.table(signal), name, loop.id)]),
  );
  if (owner === undefined && environment.stack !== undefined) return { outcome: 'unregistered' };
  const isOwner = owner === environment.stack;
  const previous = last?.record;
  const timing = { nowMs: startedAtMs, last: previous, force, backsOff: environment.tickQueue !== undefined };
  // Only the owner writes the record: a stack that only observes has none of its last pass.
  if (isOwner && !isDue(loop.id, cluster.spec, timing)) return { outcome: 'notDue' };

  const warn = (text: string) => {
    telemetry.log('warn', text, { cluster: name });
  };
  const writes = isOwner ? writesOf(cluster.spec.mode) : 'none';
  const ran = await runPass(environment, { loop, cluster, previous, startedAtMs, signal, warn, writes });
  const pass = isOwner ? await recordOwnPass(batch, cluster.spec, ran, last) : { ...ran, ownedBy: owner };
  logPass(telemetry, loop.id, name, pass);
  const isBack = isUnreachable(previous) && !isUnreachable(pass);
  return { outcome: pass.errors.length > 0 ? 'failed' : 'succeeded', ...(isBack && { resumed: cluster.spec }) };
}

/**
 * Records a pass. If the cluster gave no answer, also writes the note with which the next minute's invocation gives it
 * its own message.
 */
async function recordOwnPass(
  { loop, environment, telemetry }: Batch,
  spec: ClusterSpec,
  ran: EndedPass,
  last: ReadRunRecord | undefined,
): Promise<EndedPass> {
  const { stack, tickQueue, table } = environment;
  const nowMs = environment.nowMs();
  const [pass] = await Promise.all([
    recordPass(environment, loop.id, spec, ran, last),
    publishChanges(
      { environment, telemetry },
      { cluster: spec.name, function: loop.id },
      changesOf(loop.id, ran, last?.record),
    ),
    isUnreachable(ran) && stack !== undefined && tickQueue !== undefined
      ? withinDeadline(environment, RECORDING_MS, (signal) =>
          writeUnreachable(table(signal), { stack, loop: loop.id, cluster: spec.name, nowMs }),
        ).catch(() => {
          // The next pass writes it again.
        })
      : undefined,
  ]);
  return pass;
}

/** Until the stack loop has claimed a cluster, the others of a stack leave it alone. */
function waitsForOwner({ loop, environment: { stack } }: Batch, { owner }: RegisteredCluster): boolean {
  return owner === undefined && stack !== undefined && loop.id !== STACK_LOOP;
}

/**
 * Returns the stack that owns the cluster. A cluster without an owner becomes this stack's; a process without a stack,
 * as on a developer's machine, does not change it. For a stack, `undefined`: the cluster was unregistered meanwhile.
 */
async function ownerOf(
  { environment: { stack, table } }: Batch,
  { owner, spec }: RegisteredCluster,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (owner !== undefined) return owner.stack;
  return stack === undefined ? undefined : claimCluster(table(signal), spec.name, stack);
}

export interface PassInput {
  readonly loop: LoopDefinition;
  readonly cluster: RegisteredCluster;
  readonly previous: RunRecord | undefined;
  readonly startedAtMs: number;
  /** Ends every call of the pass; calls that ignore it are abandoned. */
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  readonly writes: Writes;
  /** The caller requests this pass although the cluster is paused. */
  readonly evenIfPaused?: boolean;
}

/** Runs one loop for one cluster, and writes the events of its findings. Never throws. */
export async function runPass(environment: Environment, input: PassInput): Promise<EndedPass> {
  const { loop, cluster, signal, startedAtMs, writes } = input;
  const passId = environment.newPassId();
  const wouldWrite: string[] = [];
  let credentialEndsSoon: boolean | undefined;
  let isAnyProbeAnswered = false;
  const ended = (outcome: Pick<EndedPass, 'report' | 'events' | 'errors'>): EndedPass => ({
    passId,
    mode: writes === 'all' ? 'enforce' : 'observe',
    startedAtMs,
    durationMs: environment.nowMs() - startedAtMs,
    wouldWrite: [...wouldWrite],
    wouldWriteSame: isSameAsRecorded(wouldWrite, input.previous),
    credentialEndsSoon,
    withoutAnswer: isWithoutAnswer(outcome.errors[0], isAnyProbeAnswered)
      ? (input.previous?.withoutAnswer ?? 0) + 1
      : 0,
    ...outcome,
  });
  try {
    const { report, kubernetes } = await unlessAborted(signal, async () => {
      const access = await environment.connect(cluster.spec, { loop: loop.id, signal, warn: input.warn });
      credentialEndsSoon = access.credentialEndsSoon;
      const probe: Prober = async (target, given) => {
        const reply = await access.probe(target, given);
        isAnyProbeAnswered ||= reply.kind === 'status';
        return reply;
      };
      const observed = { ...access, probe };
      const context = passContext(environment, input, passId, observed, (description) => wouldWrite.push(description));
      const report = await loop.run(context);
      wouldWrite.push(...(report.wouldWrite ?? []));
      return { report, kubernetes: context.kubernetes };
    });
    const events = await writePassEvents(environment, input, kubernetes, report.findings);
    return ended({ report, events, errors: report.errors });
  } catch (error) {
    return ended({ errors: [error] });
  }
}

function passContext(
  environment: Environment,
  input: PassInput,
  passId: string,
  { kubernetes, probe, controlPlane }: ClusterAccess,
  wouldWrite: (description: string) => void,
): PassContext {
  const { loop, cluster, previous, startedAtMs, signal, writes } = input;
  const { spec, rangesGeneration } = cluster;
  const table = environment.table(signal);
  const { nowMs, newPassId } = environment;
  const confirmWrites = () => confirmRegistration(environment, input, table);
  const options = { nowMs, newWriteId: newPassId, wouldWrite, confirmWrites };
  const mode = previousMode(previous);
  const timing = { nowMs: startedAtMs, last: previous, backsOff: environment.tickQueue !== undefined };
  return {
    spec,
    rangesGeneration,
    ...portsFor(writes, { table, kubernetes }, spec.allocator, options),
    probe,
    controlPlane,
    lookUp: addressLookUp(environment, spec, signal),
    passId,
    nowMs,
    triesEveryMs: spacingMs(loop.id, spec, timing),
    startDeadline: environment.startDeadline,
    pause: (ms) => pause(environment.startDeadline(ms), signal),
    ...(mode !== undefined && { previousMode: mode }),
    ...(previous?.lastSuccessAtMs !== undefined && { lastSuccessAtMs: previous.lastSuccessAtMs }),
    state: previous?.state,
  };
}

/**
 * Reads the registration and both pauses again: the pass may be minutes old, and began by a list that may be older.
 * @throws OlderSpecError, TableError
 */
async function confirmRegistration(
  environment: Environment,
  { cluster: { spec, generation }, evenIfPaused = false }: PassInput,
  table: KeyValueTable,
): Promise<void> {
  const { name } = spec;
  const [current, pausedAll] = await Promise.all([readCluster(table, name), readPauseOfAll(table)]);
  const owner = current && otherOwner(current, environment.stack);
  const pause = evenIfPaused ? undefined : pauseInForce([pausedAll, current?.paused], environment.nowMs());
  const ended = (what: string) => {
    const message = `${what} while this pass ran: it ended without this write, and the next pass reads the registration again`;
    return new OlderSpecError('OlderSpec', message);
  };
  if (current === undefined) throw ended(`cluster ${name} was unregistered`);
  if (current.generation !== generation) throw ended(`the spec of cluster ${name} was changed`);
  if (owner !== undefined) throw ended(`cluster ${name} was taken over by the stack ${owner}`);
  if (pause !== undefined) throw ended(`cluster ${name} was paused by ${pause.by} (${pause.reason})`);
}

/** Writes the events of a pass within its time. Never throws: a pass must not fail because of an event. */
async function writePassEvents(
  environment: Environment,
  { loop, cluster, previous, signal }: PassInput,
  kubernetes: ClusterPort,
  findings: readonly Finding[],
): Promise<EventsReport> {
  const plan = planEvents({
    drafts: findings.flatMap(({ event }) => event ?? []),
    loop: loop.id,
    instance: environment.reportingInstance,
    previous: previous?.events ?? {},
    nowMs: environment.nowMs(),
    cap: cluster.spec.maxEventsPerPass,
  });
  // No events to write: a spent deadline is no error.
  if (plan.writes.length === 0) return writeEvents(kubernetes, plan);
  try {
    return await unlessAborted(signal, () => writeEvents(kubernetes, plan));
  } catch (error) {
    const errors = [error instanceof Error ? error : new Error('Events were not written', { cause: error })];
    // Some may have been written: the next pass finds them and continues their series.
    return { written: 0, dropped: plan.dropped + plan.writes.length, errors, sightings: previous?.events ?? {} };
  }
}
