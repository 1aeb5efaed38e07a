import type { LoopDefinition } from '../loops/pass.ts';
import { claimCluster } from '../table/cluster-registration.ts';
import type { Pause, RegisteredCluster } from '../table/clusters.ts';
import { readRunRecord } from '../table/run-records.ts';
import { CLOSING_MS, PASS_BUDGET_MS } from './budgets.ts';
import { unlessAborted } from './deadline.ts';
import { isDue, pauseInForce } from './due.ts';
import type { Invocation } from './invoked.ts';
import { countPass, logPass, logUnstartedPass } from './log-pass.ts';
import { recordPass } from './pass-record.ts';
import { runPass } from './run-pass.ts';

/** What all visits of one invocation share. */
export interface Round extends Invocation {
  readonly loop: LoopDefinition;
  /** Passes run although their interval is not over. */
  readonly force: boolean;
  /** The hold on all clusters. */
  readonly pausedAll: Pause | undefined;
}

export type Visit =
  | { readonly outcome: 'succeeded' | 'failed' | 'notDue' }
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** It was unregistered since somebody named it. */
  | { readonly outcome: 'unregistered' }
  /** The function's time was over before its turn came. */
  | { readonly outcome: 'unreached' };

/** Looks a cluster up in the table, within the time of its pass. */
export type OpenCluster = (signal: AbortSignal) => Promise<RegisteredCluster | undefined>;

/** Runs the loop's pass for one cluster, if it is due, within its own deadline. Never throws. */
export async function visitCluster(round: Round, name: string, open: OpenCluster): Promise<Visit> {
  const { loop, environment, telemetry, remainingMs } = round;
  const startedAtMs = environment.nowMs();
  const budgetMs = Math.min(PASS_BUDGET_MS[loop.id], remainingMs() - CLOSING_MS);
  if (budgetMs <= 0) {
    countPass(telemetry, loop.id, true, name);
    return { outcome: 'unreached' };
  }

  const { signal, cancel } = environment.startDeadline(budgetMs);
  try {
    const cluster = await unlessAborted(signal, () => open(signal));
    if (cluster === undefined) return { outcome: 'unregistered' };
    const pause = pauseInForce([round.pausedAll, cluster.paused], startedAtMs);
    if (pause !== undefined) return { outcome: 'paused', pause };
    return { outcome: await passIfDue(round, cluster, startedAtMs, signal) };
  } catch (error) {
    logUnstartedPass(telemetry, loop.id, name, error);
    return { outcome: 'failed' };
  } finally {
    cancel();
  }
}

async function passIfDue(
  round: Round,
  cluster: RegisteredCluster,
  startedAtMs: number,
  signal: AbortSignal,
): Promise<'succeeded' | 'failed' | 'notDue' | 'unregistered'> {
  const { loop, force, environment, telemetry } = round;
  const { name } = cluster.spec;
  const [owner, last] = await unlessAborted(signal, () =>
    Promise.all([ownerOf(round, cluster, signal), readRunRecord(environment.table(signal), name, loop.id)]),
  );
  if (owner === undefined && environment.stack !== undefined) return 'unregistered';
  const isOwner = owner === environment.stack;
  const previous = last?.record;
  const timing = { nowMs: startedAtMs, lastStartedAtMs: previous?.startedAtMs, force };
  // The record is the owner's: when a stack that only observes last had a pass is written nowhere.
  if (isOwner && !isDue(loop.id, cluster.spec, timing)) return 'notDue';

  const warn = (text: string) => {
    telemetry.log('warn', text, { cluster: name });
  };
  const ownedBy = isOwner ? undefined : owner;
  const ran = await runPass(environment, { loop, cluster, previous, startedAtMs, signal, warn, ownedBy });
  const pass = isOwner ? await recordPass(environment, loop.id, cluster.spec, ran, last) : ran;
  logPass(telemetry, loop.id, name, pass);
  return pass.errors.length > 0 ? 'failed' : 'succeeded';
}

/**
 * Who owns the cluster. What nobody does becomes this stack's; without a stack of its own, as on a developer's machine, it
 * is left so. Of a stack, `undefined`: the cluster was unregistered meanwhile.
 */
async function ownerOf(
  { environment: { stack, table } }: Round,
  { owner, spec }: RegisteredCluster,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (owner !== undefined) return owner.stack;
  return stack === undefined ? undefined : claimCluster(table(signal), spec.name, stack);
}
