import { eachOf } from '../cluster/each-of.ts';
import { CONCURRENT_READS, QUEUEING_MS } from '../runtime/budgets.ts';
import { withinInvocation } from '../runtime/invocation.ts';
import { readRunRecord } from '../table/run-records.ts';
import { listFleetNotes, type Suspect } from '../table/suspects.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { isUnreachable } from './due.ts';
import type { LoopInvocation } from './run-pass.ts';

/** Clusters that do not share the messages of the others. */
export interface SetApart {
  /** Clusters whose last pass of the loop got no answer. */
  readonly unreachable: ReadonlySet<string>;
  /** Clusters whose passes still run alone. */
  readonly suspects: ReadonlyMap<string, Suspect>;
}

export const NONE_APART: SetApart = { unreachable: new Set(), suspects: new Map() };

/** Returns the clusters of the loop that do not share messages; none if that cannot be read. */
export async function clustersApart(invocation: LoopInvocation): Promise<SetApart> {
  const { loop, environment, telemetry } = invocation;
  const { stack, tickQueue } = environment;
  if (stack === undefined || tickQueue === undefined) return NONE_APART;
  const nowMs = environment.nowMs();
  return withinInvocation(invocation, QUEUEING_MS, async (signal) => {
    const table = environment.table(signal);
    const { unreachable, suspects } = await listFleetNotes(table, stack, loop.id);
    const silent = await eachOf(unreachable, CONCURRENT_READS, async (name) => {
      const last = await readRunRecord(table, name, loop.id);
      return isUnreachable(last?.record) ? [name] : [];
    });
    const alone = [...suspects].flatMap(([name, { suspect }]): [string, Suspect][] =>
      suspect.untilMs > nowMs ? [[name, suspect]] : [],
    );
    return { unreachable: new Set(silent.flat()), suspects: new Map(alone) };
  }).catch((error: unknown) => {
    telemetry.log('error', 'suspect and unreachable clusters not read', { errors: [errorSentence(error)] });
    return NONE_APART;
  });
}
