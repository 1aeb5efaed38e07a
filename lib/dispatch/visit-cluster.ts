import type { LoopDefinition } from '../loops/pass.ts';
import type { Pause, RegisteredCluster } from '../table/clusters.ts';
import type { ReadRunRecord } from '../table/run-records.ts';
import { readRunRecord, writeRunRecord } from '../table/run-records.ts';
import { CLOSING_MS, PASS_BUDGET_MS, RECORDING_MS } from './budgets.ts';
import { unlessAborted } from './deadline.ts';
import { isDue, pauseInForce } from './due.ts';
import type { Tick } from './event.ts';
import type { Invocation } from './invocation.ts';
import type { EndedPass } from './pass-record.ts';
import { isWorthRecording, recordOf } from './pass-record.ts';
import { runPass } from './run-pass.ts';
import { countPass, tellPass, tellUnbegun } from './tell-pass.ts';

/** What all visits of one invocation share. */
export interface Round extends Invocation {
  readonly loop: LoopDefinition;
  readonly tick: Tick;
  /** The hold on all clusters. */
  readonly pausedAll: Pause | undefined;
}

export type Visit =
  | { readonly outcome: 'succeeded' | 'failed' | 'notDue' }
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** The function's time was over before its turn came. */
  | { readonly outcome: 'unreached' };

/** Runs the loop's pass for one cluster, if it is due, within its own deadline. Never throws. */
export async function visitCluster(round: Round, cluster: RegisteredCluster): Promise<Visit> {
  const { loop, environment, telemetry, remainingMs } = round;
  const startedAtMs = environment.nowMs();
  const pause = pauseInForce([round.pausedAll, cluster.paused], startedAtMs);
  if (pause !== undefined) return { outcome: 'paused', pause };
  const budgetMs = Math.min(PASS_BUDGET_MS[loop.id], remainingMs() - CLOSING_MS);
  if (budgetMs <= 0) {
    countPass(telemetry, loop.id, true);
    return { outcome: 'unreached' };
  }

  const deadline = environment.startDeadline(budgetMs);
  try {
    return { outcome: await passIfDue(round, cluster, startedAtMs, deadline.signal) };
  } catch (error) {
    tellUnbegun(telemetry, loop.id, cluster.spec.name, error);
    return { outcome: 'failed' };
  } finally {
    deadline.cancel();
  }
}

async function passIfDue(
  round: Round,
  cluster: RegisteredCluster,
  startedAtMs: number,
  signal: AbortSignal,
): Promise<'succeeded' | 'failed' | 'notDue'> {
  const { loop, tick, environment, telemetry } = round;
  const { spec } = cluster;
  const last = await unlessAborted(signal, () => readRunRecord(environment.table(signal), spec.name, loop.id));
  const previous = last?.record;
  const timing = { nowMs: startedAtMs, lastStartedAtMs: previous?.startedAtMs, force: tick.force };
  if (!isDue(loop.id, spec, timing)) return 'notDue';

  const warn = (text: string) => {
    telemetry.log('warn', text, { cluster: spec.name });
  };
  const ran = await runPass(environment, { loop, cluster, previous, startedAtMs, signal, warn });
  const pass = await recorded(round, cluster, ran, last);
  tellPass(telemetry, loop.id, spec.name, pass);
  return pass.errors.length > 0 ? 'failed' : 'succeeded';
}

/** The pass, failed when its record could not be written: nobody would know of it, nor what it must remember. */
async function recorded(
  { loop, environment }: Round,
  { spec }: RegisteredCluster,
  pass: EndedPass,
  last: ReadRunRecord | undefined,
): Promise<EndedPass> {
  const record = recordOf(pass, last?.record);
  if (!isWorthRecording(loop.id, spec, pass, record, last?.record)) return pass;
  const deadline = environment.startDeadline(RECORDING_MS);
  try {
    // When another pass of the loop was faster its record stands, and the next one reads that.
    await unlessAborted(deadline.signal, () =>
      writeRunRecord(environment.table(deadline.signal), spec.name, loop.id, record, last?.item),
    );
    return pass;
  } catch (error) {
    return { ...pass, errors: [...pass.errors, error] };
  } finally {
    deadline.cancel();
  }
}
