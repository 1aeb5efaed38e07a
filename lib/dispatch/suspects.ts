import { CONCURRENT_READS, QUEUEING_MS, RECORDING_MS, withinInvocation } from '../runtime/deadline.ts';
import type { Loop } from '../spec/cluster-spec.ts';
import { type Accident, afterAccident, listFleetNotes, type Suspect, writeSuspect } from '../table/fleet-notes.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { readRunRecord } from '../table/run-records.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { eachOf } from '../util/async.ts';
import { isUnreachable } from './due.ts';
import { someOf } from './report-pass.ts';
import type { LoopInvocation } from './run-pass.ts';
import { MOST_ALONE, NONE_APART, plannedTick, type SetApart, sendTicks } from './ticks.ts';

/** Returns the unreachable and suspect clusters, which share no message with the rest; no cluster if the table is unreadable. */
export async function clustersApart(invocation: LoopInvocation): Promise<SetApart> {
  const { loop, environment, telemetry } = invocation;
  const { stack, tickQueue } = environment;
  if (stack === undefined || tickQueue === undefined) return NONE_APART;
  const nowMs = environment.nowMs();
  return withinInvocation(invocation, QUEUEING_MS, async (signal) => {
    const table = environment.table(signal);
    const { unreachable, suspects, unreadable } = await listFleetNotes(table, stack, loop.id);
    if (unreadable.size > 0) {
      const errors = someOf([...unreadable.values()].map(({ error }) => errorSentence(error)));
      telemetry.log('error', 'suspects ignored, because their items are corrupt', { errors });
    }
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

/**
 * Marks clusters as suspects, because the process of their passes ended or was blocked. From the next minute on, these clusters
 * have separate messages. If they were not suspects yet, and there are few suspects, also queues a separate tick now for each
 * marked cluster, because the other ticks of this minute share messages. Never throws.
 */
export async function containAccident(invocation: LoopInvocation, accident: Accident, reason: string): Promise<void> {
  const { loop, environment, telemetry } = invocation;
  const { stack, tickQueue } = environment;
  telemetry.log('error', 'process lost', { reason, clusters: someOf(accident.clusters) });
  if (stack === undefined || tickQueue === undefined) return;
  const nowMs = environment.nowMs();
  try {
    const { marked, alone } = await withinInvocation(invocation, RECORDING_MS, (signal) =>
      markSuspects(environment.table(signal), { stack, loop: loop.id }, accident, nowMs),
    );
    if (marked.length === 0) return;
    telemetry.count('suspects', marked.length);
    telemetry.log('warn', 'suspects run alone', { clusters: someOf(marked), reason });
    if (accident.ofSuspects || alone > MOST_ALONE) return;
    const tick = { loop: loop.id, dueAtMs: nowMs, followedUntilMs: nowMs };
    const ticks = marked.map((name) => plannedTick({ ...tick, clusters: [name] }, nowMs));
    await sendTicks(ticks, invocation);
  } catch (error) {
    telemetry.log('error', 'suspects not recorded', { errors: [errorSentence(error)] });
  }
}

/** Records that passes of suspect clusters did not crash or block the process. Never throws: a later pass can record it. */
export async function proveSuspects(invocation: LoopInvocation, clusters: readonly string[]): Promise<void> {
  const { loop, environment } = invocation;
  const { stack } = environment;
  if (stack === undefined || clusters.length === 0) return;
  await withinInvocation(invocation, RECORDING_MS, async (signal) => {
    const table = environment.table(signal);
    const { suspects } = await listFleetNotes(table, stack, loop.id);
    await eachOf(clusters, CONCURRENT_READS, async (cluster) => {
      const { suspect, item } = suspects.get(cluster) ?? {};
      if (suspect?.state !== 'unproven') return;
      await writeSuspect(table, { stack, loop: loop.id, cluster }, { ...suspect, state: 'proven' }, item);
    });
  }).catch(() => undefined);
}

/** Marks clusters as suspects. Returns the clusters that it marked, and the number of all suspects. */
async function markSuspects(
  table: KeyValueTable,
  loopOfStack: { readonly stack: string; readonly loop: Loop },
  accident: Accident,
  nowMs: number,
) {
  const { suspects, unreadable } = await listFleetNotes(table, loopOfStack.stack, loopOfStack.loop);
  const marked = await eachOf(accident.clusters, CONCURRENT_READS, async (cluster) => {
    const known = suspects.get(cluster);
    const suspect = afterAccident(known?.suspect, accident, nowMs);
    if (suspect === undefined) return [];
    const previous = known?.item ?? unreadable.get(cluster)?.item;
    return (await writeSuspect(table, { ...loopOfStack, cluster }, suspect, previous)) ? [cluster] : [];
  });
  const before = [...suspects].flatMap(([name, { suspect }]) => (suspect.untilMs > nowMs ? [name] : []));
  return { marked: marked.flat(), alone: new Set([...before, ...marked.flat()]).size };
}
