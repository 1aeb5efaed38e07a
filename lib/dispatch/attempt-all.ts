import { eachOf } from '../cluster/each-of.ts';
import { CONCURRENT_PASSES, PASS_BUDGET_MS } from '../runtime/budgets.ts';
import type { Environment } from '../runtime/environment.ts';
import { type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { SetApart } from './plan-ticks.ts';
import { type Attempt, attemptPass, type Batch, type OpenCluster } from './run-pass.ts';
import { containAccident } from './suspects.ts';

export interface NamedAttempt {
  readonly name: string;
  readonly attempt: Attempt;
}

/** Runs the passes of suspects after those of the others, one at a time. */
export async function attemptApart(
  batch: Batch,
  clusters: readonly { readonly name: string }[],
  { suspects }: SetApart,
  known: ReadonlyMap<string, RegisteredCluster>,
): Promise<NamedAttempt[]> {
  const isSuspect = ({ name }: { readonly name: string }) => suspects.has(name);
  const others = clusters.filter((one) => !isSuspect(one));
  const attempts = await attemptAll(batch, others, false, known);
  for (const suspect of clusters.filter(isSuspect)) attempts.push(...(await attemptAll(batch, [suspect], true, known)));
  return attempts;
}

/** Processes that have run passes: the first passes load and compile code. */
const WARM = new WeakSet<Environment>();

/**
 * Runs the passes of all. If they keep the event loop busy for longer than a pass may take, some deadlines passed while
 * their passes waited for it.
 * @param known registrations that were read already; the others are read one by one.
 */
export async function attemptAll(
  batch: Batch,
  clusters: readonly { readonly name: string }[],
  ofSuspects: boolean,
  known?: ReadonlyMap<string, RegisteredCluster>,
): Promise<NamedAttempt[]> {
  if (clusters.length === 0) return [];
  const { table, nowMs, busyMs = () => 0, clustersPerTick = CONCURRENT_PASSES } = batch.environment;
  const beganAtMs = nowMs();
  const busyBeforeMs = busyMs();
  const attempts = await eachOf(clusters, clustersPerTick, async ({ name }) => {
    const open: OpenCluster = async (signal) => known?.get(name) ?? (await readCluster(table(signal), name));
    return { name, attempt: await attemptPass(batch, name, open) };
  });
  const spentMs = busyMs() - busyBeforeMs;
  const mostMs = PASS_BUDGET_MS[batch.loop.id] * Math.ceil(clusters.length / clustersPerTick);
  if (spentMs > mostMs && WARM.has(batch.environment)) {
    const accident = { atMs: beganAtMs, clusters: clusters.map(({ name }) => name), ofSuspects };
    await containAccident(batch, accident, `the process was busy for ${Math.round(spentMs)} ms`);
  }
  WARM.add(batch.environment);
  return attempts;
}
