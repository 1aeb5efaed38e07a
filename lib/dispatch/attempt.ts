import { writesOf } from '../loops/writes.ts';
import { CLOSING_MS, PASS_BUDGET_MS, RECORDING_MS, withDeadline, withinDeadline } from '../runtime/deadline.ts';
import type { Environment } from '../runtime/environment.ts';
import { type ClusterSpec, STACK_LOOP } from '../spec/cluster-spec.ts';
import { claimCluster, type Pause, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { writeUnreachable } from '../table/fleet-notes.ts';
import { type ReadRunRecord, readRunRecord } from '../table/run-records.ts';
import { eachOf, unlessAborted } from '../util/async.ts';
import { isDue, isUnreachable, pauseInForce } from './due.ts';
import { type EndedPass, recordPass } from './record-pass.ts';
import { changesOf, countPass, logPass, logUnstartedPass, publishChanges } from './report-pass.ts';
import { type LoopInvocation, runPass } from './run-pass.ts';
import { containAccident } from './suspects.ts';
import type { SetApart } from './ticks.ts';

export interface Batch extends LoopInvocation {
  readonly force: boolean;
  readonly pausedAll: Pause | undefined;
}

/** `resumed`: the spec, if the cluster answers again. `unreached`: no time was left to begin the pass. */
type Result =
  | { readonly outcome: 'succeeded' | 'failed'; readonly resumed?: ClusterSpec }
  | { readonly outcome: 'paused'; readonly pause: Pause }
  | { readonly outcome: 'notDue' | 'unregistered' | 'unreached' };

export type Attempt = { readonly name: string } & Result;

/** If the loop's pass for a cluster is due, runs the pass within a deadline of its own. Never throws. */
async function attemptPass(batch: Batch, name: string): Promise<Result> {
  const { loop, environment, telemetry, remainingMs } = batch;
  const startedAtMs = environment.nowMs();
  const budgetMs = Math.min(PASS_BUDGET_MS[loop.id], remainingMs() - CLOSING_MS);
  if (budgetMs <= 0) {
    countPass(telemetry, loop.id, true);
    return { outcome: 'unreached' };
  }

  try {
    return await withDeadline(environment, budgetMs, async (signal) => {
      const cluster = await unlessAborted(signal, () => readCluster(environment.table(signal), name));
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
): Promise<Result> {
  const { loop, force, environment, telemetry } = batch;
  const { stack } = environment;
  const { name } = cluster.spec;
  // The other loops of a stack skip a cluster until kubernetes-service has claimed it for the stack.
  const mayClaim = stack === undefined || loop.id === STACK_LOOP;
  if (cluster.owner === undefined && !mayClaim) return { outcome: 'notDue' };
  const table = environment.table(signal);
  // The owner is `undefined` if the cluster has no owner and this process no stack, or if it is no longer registered.
  const [owner, last] = await unlessAborted(signal, () =>
    Promise.all([
      cluster.owner?.stack ?? (stack && claimCluster(table, name, stack)),
      readRunRecord(table, name, loop.id),
    ]),
  );
  if (owner === undefined && stack !== undefined) return { outcome: 'unregistered' };
  const isOwner = owner === stack;
  const previous = last?.record;
  const timing = { nowMs: startedAtMs, last: previous, backsOff: environment.tickQueue !== undefined };
  // Another stack writes no run records, so it does not know its last pass, and observes at every tick.
  if (isOwner && !force && !isDue(loop.id, cluster.spec, timing)) return { outcome: 'notDue' };

  const warn = (text: string) => telemetry.log('warn', text, { cluster: name });
  const writes = isOwner ? writesOf(cluster.spec.mode) : 'none';
  const ran = await runPass(environment, { loop, cluster, previous, startedAtMs, signal, warn, writes });
  const pass = isOwner ? await recordOwnPass(batch, cluster.spec, ran, last) : { ...ran, ownedBy: owner };
  logPass(telemetry, loop.id, name, pass, previous);
  const isBack = isUnreachable(previous) && !isUnreachable(pass);
  return { outcome: pass.errors.length > 0 ? 'failed' : 'succeeded', ...(isBack && { resumed: cluster.spec }) };
}

/** Records a pass and publishes its changes. Marks an unreachable cluster: its ticks share no message with reachable clusters. */
async function recordOwnPass(
  { loop, environment, telemetry }: Batch,
  spec: ClusterSpec,
  ran: EndedPass,
  last: ReadRunRecord | undefined,
): Promise<EndedPass> {
  const { stack, tickQueue, table } = environment;
  const { name: cluster } = spec;
  const nowMs = environment.nowMs();
  const writeNote = async () => {
    if (!isUnreachable(ran) || stack === undefined || tickQueue === undefined) return;
    const write = (signal: AbortSignal) => writeUnreachable(table(signal), { stack, loop: loop.id, cluster, nowMs });
    // If the write fails, the next pass without an answer writes the note again.
    await withinDeadline(environment, RECORDING_MS, write).catch(() => undefined);
  };
  const changes = changesOf(loop.id, ran, last?.record);
  const [pass] = await Promise.all([
    recordPass(environment, loop.id, spec, ran, last),
    publishChanges({ environment, telemetry }, { cluster, function: loop.id }, changes),
    writeNote(),
  ]);
  return pass;
}

/** Runs the passes of the named clusters: first for the clusters that are not suspects, and then for each suspect by itself. */
export async function attemptApart(batch: Batch, names: readonly string[], { suspects }: SetApart): Promise<Attempt[]> {
  const { alone = [], others = [] } = Object.groupBy(names, (name) => (suspects.has(name) ? 'alone' : 'others'));
  const attempts = await attemptAll(batch, others, false);
  for (const suspect of alone) attempts.push(...(await attemptAll(batch, [suspect], true)));
  return attempts;
}

/** Environments whose first passes have ended. First passes also load code: if they block the process, no cluster is suspect. */
const WARM = new WeakSet<Environment>();

export async function attemptAll(batch: Batch, clusters: readonly string[], ofSuspects: boolean): Promise<Attempt[]> {
  if (clusters.length === 0) return [];
  const { nowMs, busyMs = () => 0, clustersPerTick } = batch.environment;
  const beganAtMs = nowMs();
  const busyBeforeMs = busyMs();
  const attempts = await eachOf(clusters, clustersPerTick, async (name) => {
    return { name, ...(await attemptPass(batch, name)) };
  });
  const spentMs = busyMs() - busyBeforeMs;
  const mostMs = PASS_BUDGET_MS[batch.loop.id] * Math.ceil(clusters.length / clustersPerTick);
  if (spentMs > mostMs && WARM.has(batch.environment)) {
    const accident = { atMs: beganAtMs, clusters, ofSuspects };
    await containAccident(batch, accident, `the process was busy for ${Math.round(spentMs)} ms`);
  }
  WARM.add(batch.environment);
  return attempts;
}
