import * as z from 'zod/mini';
import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import { RECORDING_MS, withDeadline } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { cutFinding, cutLines, type RecordedFinding, type RunRecord } from '../table/run-records.ts';
import { describeError, errorSentence } from '../telemetry/describe-error.ts';
import { someOf } from './log-pass.ts';
import { type EndedPass, MAX_FINDINGS } from './record-pass.ts';

/** The detail of an event: a change of the state of one cluster (docs/events.md). */
export const clusterEventShape = z.object({
  schema: z.literal(1),
  stack: z.string(),
  cluster: z.string(),
  function: z.enum([...LOOPS, 'deregister']),
  change: z.enum(['healthy', 'failing', 'endpointsChanged', 'findingOpened', 'findingClosed']),
  at: z.string(),
  error: z.exactOptional(z.object({ code: z.string(), message: z.string() })),
  changes: z.exactOptional(z.readonly(z.array(z.string()))),
  finding: z.exactOptional(
    z.object({
      type: z.string(),
      message: z.string(),
      item: z.exactOptional(z.string()),
      service: z.exactOptional(z.string()),
    }),
  ),
});

export type ClusterEvent = Readonly<z.infer<typeof clusterEventShape>>;

type Change = Pick<ClusterEvent, 'change' | 'error' | 'changes' | 'finding'>;

/** Returns the changes of a cluster's state by a pass, compared with the record of the previous pass. */
export function changesOf(loop: Loop, pass: EndedPass, previous: RunRecord | undefined): readonly Change[] {
  const outcome = pass.errors.length > 0 ? 'failed' : 'succeeded';
  const healthy: Change = { change: 'healthy' };
  return [
    ...(outcome === previous?.outcome ? [] : [outcome === 'failed' ? failing(pass) : healthy]),
    ...(loop === 'kubernetes-service' ? endpointsChanges(pass.report?.changes ?? []) : []),
    ...findingChanges(pass, previous),
  ];
}

function failing({ errors }: EndedPass): Change {
  return { change: 'failing', error: describeError(errors[0]) };
}

/** @param changes the lines of a pass or a deregistration */
export function endpointsChanges(changes: readonly string[]): readonly Change[] {
  const lines = changes.filter((line) => /^\w+ endpoint(s|slice) /.test(line));
  return lines.length === 0 ? [] : [{ change: 'endpointsChanged', changes: cutLines(lines) }];
}

/**
 * A pass without a report has no findings to compare. Only findings that the run record keeps have events: the next
 * pass would not know which others were published.
 */
function findingChanges({ report }: EndedPass, previous: RunRecord | undefined): Change[] {
  if (report === undefined) return [];
  const before = new Map((previous?.findings ?? []).map((finding) => [keyOf(finding), finding]));
  const now = new Map(report.findings.map((finding) => [keyOf(finding), finding]));
  const opened = [...now].filter(([key]) => !before.has(key)).slice(0, MAX_FINDINGS);
  const closed = [...before].filter(([key]) => !now.has(key));
  return [
    ...opened.map(([, finding]): Change => ({ change: 'findingOpened', finding: cutFinding(finding) })),
    ...closed.map(([, finding]): Change => ({ change: 'findingClosed', finding: cutFinding(finding) })),
  ];
}

/** Returns the key of a finding, as in the run record: its message may differ from pass to pass. */
function keyOf(finding: Finding | RecordedFinding): string {
  const { type, item, service } = cutFinding(finding);
  return JSON.stringify([type, item, service]);
}

/** Publishes changes of a cluster. Never throws: a pass must not fail because of an event. */
export async function publishChanges(
  { environment, telemetry }: Pick<Invocation, 'environment' | 'telemetry'>,
  of: Pick<ClusterEvent, 'cluster' | 'function'>,
  changes: readonly Change[],
): Promise<void> {
  const { eventBus, stack, nowMs } = environment;
  if (eventBus === undefined || stack === undefined || changes.length === 0) return;
  const at = new Date(nowMs()).toISOString();
  const events = changes.map((change): ClusterEvent => ({ schema: 1, stack, ...of, at, ...change }));
  const { unpublished, errors } = await withDeadline(environment, RECORDING_MS, (signal) =>
    eventBus.publish(events, signal),
  );
  if (unpublished === 0) return;
  telemetry.count('unpublishedEvents', unpublished);
  telemetry.log('error', 'cluster events not published', {
    cluster: of.cluster,
    events: unpublished,
    errors: someOf(errors.map(errorSentence)),
  });
}
