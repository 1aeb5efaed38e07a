import * as z from 'zod/mini';
import type { Unsent } from '../aws/send-batches.ts';
import { ClusterError, isFaultOfObject } from '../kubernetes/cluster-port.ts';
import { RECORDING_MS, withDeadline } from '../runtime/deadline.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { LOOPS, type Loop } from '../spec/cluster-spec.ts';
import { cutFinding, cutLines, keptFindings, type RecordedFinding, type RunRecord } from '../table/run-records.ts';
import {
  describeError,
  errorSentence,
  failedPassCounter,
  findingCounter,
  type Level,
  type LogFields,
  samplesOf,
  stackOfFault,
  type Telemetry,
} from '../telemetry/telemetry.ts';
import { type EndedPass, foundByType, isNews } from './record-pass.ts';

/** Each pass logs the usage of its fullest range if this percentage or more is in use. */
const FULL_PERCENT = 80;

export function logPass(
  telemetry: Telemetry,
  loop: Loop,
  cluster: string,
  pass: EndedPass,
  previous: RunRecord | undefined,
): void {
  const { report, errors, durationMs, events } = pass;
  const failed = errors.length > 0;
  countPass(telemetry, loop, failed);
  telemetry.sample('durationMs', durationMs);
  const { activeLeases, fullestRangePercent } = samplesOf(report?.counts ?? {});
  if (activeLeases !== undefined) telemetry.sample('activeLeases', activeLeases);
  if (fullestRangePercent !== undefined) telemetry.sample('fullestRangePercent', fullestRangePercent);
  if (fullestRangePercent !== undefined && fullestRangePercent >= FULL_PERCENT) {
    telemetry.log('warn', 'range filling up', { cluster, fullest: [`${cluster}: ${fullestRangePercent} per cent`] });
  }
  for (const [type, found] of foundByType(report)) telemetry.count(findingCounter(loop, type), found, type);
  const { lateProbes = 0 } = report?.counts ?? {};
  if (lateProbes > 0) telemetry.count('lateProbes', lateProbes);
  if (pass.credentialEndsSoon) telemetry.count('credentialsEnding', 1);
  if (events !== undefined && events.dropped > 0) telemetry.count('eventsDropped', events.dropped);
  if (isNews(pass, previous)) {
    telemetry.log(levelOf(pass), failed ? 'pass failed' : 'pass succeeded', { cluster, ...fieldsOf(pass) });
  }
}

export function logUnstartedPass(telemetry: Telemetry, loop: Loop, cluster: string, error: unknown): void {
  countPass(telemetry, loop, true);
  telemetry.log('error', 'pass failed', { cluster, errors: [errorSentence(error)], stack: stackOfFault(error) });
}

/** Counts a pass, even if it could not run. */
export function countPass(telemetry: Telemetry, loop: Loop, failed: boolean): void {
  telemetry.count('passes', 1);
  telemetry.count('failures', failed ? 1 : 0);
  const originals = failedPassCounter(loop);
  if (failed && originals !== undefined) telemetry.count(originals, 1);
}

function levelOf({ errors, report }: EndedPass): Level {
  if (errors.length > 0) return 'error';
  return report !== undefined && report.findings.length > 0 ? 'warn' : 'info';
}

function fieldsOf({ passId, mode, ownedBy, durationMs, report, errors, wouldWrite, events }: EndedPass): LogFields {
  return {
    passId,
    mode,
    ownedBy,
    durationMs,
    counts: report?.counts,
    changes: someOf(report?.changes),
    wouldWrite: someOf(wouldWrite),
    findings: someOf(report?.findings.map(({ type, message }) => `${type}: ${message}`)),
    errors: someOf(errorTexts(errors)),
    stack: stackOfFault(errors[0]),
    eventsDropped: events?.dropped || undefined,
    eventErrors: someOf(errorTexts(events?.errors)),
  };
}

/** Returns the texts of errors. Errors of an API server, not of an object, share a text: every call to a silent server fails. */
export function errorTexts(errors: readonly unknown[] = []): string[] {
  const alike = Map.groupBy(errors, (error) => {
    if (isFaultOfObject(error) || !(error instanceof ClusterError)) return error;
    return error.server ?? error.code;
  });
  return [...alike.values()].map(([first, ...others]) => {
    const text = errorSentence(first);
    return others.length === 0 ? text : `${text} (${others.length} more for the same reason)`;
  });
}

const MAX_ENTRIES = 20;

/** Returns the first entries of a list for a log field; `undefined` for an empty list. */
export function someOf(all: readonly string[] | undefined): readonly string[] | undefined {
  if (all === undefined || all.length === 0) return undefined;
  if (all.length <= MAX_ENTRIES) return all;
  return [...all.slice(0, MAX_ENTRIES), `and ${all.length - MAX_ENTRIES} more`];
}

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

export function changesOf(loop: Loop, pass: EndedPass, previous: RunRecord | undefined): readonly Change[] {
  const [outcome, change]: readonly [string, Change] =
    pass.errors.length > 0
      ? ['failed', { change: 'failing', error: describeError(pass.errors[0]) }]
      : ['succeeded', { change: 'healthy' }];
  return [
    ...(outcome === previous?.outcome ? [] : [change]),
    ...(loop === 'kubernetes-service' ? endpointsChanges(pass.report?.changes ?? []) : []),
    ...findingChanges(pass, previous),
  ];
}

export function endpointsChanges(changes: readonly string[]): readonly Change[] {
  const lines = changes.filter((line) => /^\w+ endpoint(s|slice) /.test(line));
  return lines.length === 0 ? [] : [{ change: 'endpointsChanged', changes: cutLines(lines, 'changes') }];
}

/** Returns opened and closed findings. Omits a finding without room in the run record, because the next pass cannot read it. */
function findingChanges({ report }: EndedPass, previous: RunRecord | undefined): Change[] {
  if (report === undefined) return [];
  const keyed = (findings: readonly RecordedFinding[]) => new Map(findings.map((one) => [keyOf(one), cutFinding(one)]));
  const before = keyed(previous?.findings ?? []);
  const now = keyed(report.findings);
  const opened = [...keyed(keptFindings(report.findings))].filter(([key]) => !before.has(key));
  const closed = [...before].filter(([key]) => !now.has(key));
  return [
    ...opened.map(([, finding]): Change => ({ change: 'findingOpened', finding })),
    ...closed.map(([, finding]): Change => ({ change: 'findingClosed', finding })),
  ];
}

/** Returns a key that a finding shares with its entry in the run record. The key excludes the message, which may differ. */
function keyOf(finding: RecordedFinding): string {
  const { type, item, service } = cutFinding(finding);
  return JSON.stringify([type, item, service]);
}

/** Publishes changes of a cluster. Never throws. */
export async function publishChanges(
  { environment, telemetry }: Pick<Invocation, 'environment' | 'telemetry'>,
  of: Pick<ClusterEvent, 'cluster' | 'function'>,
  changes: readonly Change[],
): Promise<void> {
  const { eventBus, stack, nowMs } = environment;
  if (eventBus === undefined || stack === undefined || changes.length === 0) return;
  const at = new Date(nowMs()).toISOString();
  const events = changes.map((change): ClusterEvent => ({ schema: 1, stack, ...of, at, ...change }));
  const unsent = await withDeadline(environment, RECORDING_MS, (signal) => eventBus.send(events, signal));
  if (unsent.length === 0) return;
  telemetry.count('unpublishedEvents', unsent.length);
  telemetry.log('error', 'cluster events not published', {
    cluster: of.cluster,
    events: unsent.length,
    errors: reasonsOf(unsent),
  });
}

export function reasonsOf(unsent: readonly Unsent<unknown>[]): readonly string[] | undefined {
  return someOf([...new Set(unsent.map(({ error }) => errorSentence(error)))]);
}
