import { isDeepStrictEqual } from 'node:util';
import { FINDINGS_THAT_STAY, type FindingType } from '../cluster/finding.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import type { EventsReport } from '../kubernetes/events.ts';
import type { PassReport } from '../loops/pass.ts';
import { RECORDING_MS, withinDeadline } from '../runtime/deadline.ts';
import type { Environment } from '../runtime/environment.ts';
import type { ClusterSpec, Loop, Mode } from '../spec/cluster-spec.ts';
import { cutLines, MAX_FINDINGS, type ReadRunRecord, type RunRecord, writeRunRecord } from '../table/run-records.ts';
import { describeError } from '../telemetry/telemetry.ts';
import { defined } from '../util/values.ts';
import { isDueAtEveryTick, RECORD_AT_LEAST_EVERY_MS } from './due.ts';

export interface EndedPass {
  readonly passId: string;
  readonly mode: Mode;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Absent if the pass was abandoned or threw. */
  readonly report?: PassReport;
  /** The error that the pass threw, or the failures that did not stop it. If the list is not empty, the pass failed. */
  readonly errors: readonly unknown[];
  /** The number of consecutive passes, including this pass, that ended without an answer (`isWithoutAnswer`). */
  readonly withoutAnswer: number;
  readonly wouldWrite: readonly string[];
  /** The stack that owns the cluster, if that is not this stack. */
  readonly ownedBy?: string | undefined;
  readonly credentialEndsSoon?: boolean | undefined;
  /** The result of writing the Kubernetes events. Absent if the pass threw. */
  readonly events?: EventsReport;
}

function recordOf(pass: EndedPass, previous: RunRecord | undefined): RunRecord {
  const { passId, mode, startedAtMs, durationMs, report, wouldWrite } = pass;
  const failed = pass.errors.length > 0;
  const lastSuccessAtMs = failed ? previous?.lastSuccessAtMs : startedAtMs;
  // A pass without a report keeps the state of the previous pass.
  const { state } = report ?? previous ?? {};
  const changes = report?.changes ?? [];
  const lastChange = changes.length > 0 ? { atMs: startedAtMs, changes } : previous?.lastChange;
  const observed = mode === 'observe' || (failed && previous?.observed === true);
  return {
    passId,
    startedAtMs,
    durationMs,
    outcome: failed ? 'failed' : 'succeeded',
    mode,
    observed,
    counts: countsOf(pass, previous),
    ...findingsOf(pass, previous),
    failuresInARow: failed ? (previous?.failuresInARow ?? 0) + 1 : 0,
    ...(pass.withoutAnswer > 0 && { withoutAnswer: pass.withoutAnswer }),
    events: pass.events?.sightings ?? previous?.events ?? {},
    ...(failed && { error: recordedError(pass.errors[0]) }),
    ...(wouldWrite.length > 0 && { wouldWrite }),
    ...defined({ lastSuccessAtMs, lastChange, state }),
  };
}

function recordedError(error: unknown): NonNullable<RunRecord['error']> {
  return { ...describeError(error), ...(error instanceof ClusterError && defined({ server: error.server })) };
}

function findingsOf({ report }: EndedPass, previous: RunRecord | undefined) {
  if (report === undefined) {
    const { findings = [], findingCounts } = previous ?? {};
    return { findings, ...defined({ findingCounts }) };
  }
  const { findings } = report;
  if (findings.length + unlistedCount(report) <= MAX_FINDINGS) return { findings };
  return { findings, findingCounts: Object.fromEntries(foundByType(report)) };
}

/** If a pass has no report, its record keeps these counts of the previous record. */
const KEPT_COUNTS = ['needAttention', 'allocated', 'capacity', 'secondaryAllocated', 'secondaryCapacity'];

function countsOf({ report, credentialEndsSoon }: EndedPass, previous: RunRecord | undefined): RunRecord['counts'] {
  const kept = Object.entries(previous?.counts ?? {}).filter(([name]) => KEPT_COUNTS.includes(name));
  const staying = [...foundByType(report)].filter(([type]) => FINDINGS_THAT_STAY.has(type));
  const needAttention = staying.reduce((sum, [, count]) => sum + count, 0);
  return {
    ...(report?.counts ?? Object.fromEntries(kept)),
    ...(needAttention > 0 && { needAttention }),
    ...(credentialEndsSoon && { credentialsEnding: 1 }),
  };
}

/** Returns the number of findings per type, including findings that the report counts without listing them. */
export function foundByType(report: PassReport | undefined): ReadonlyMap<FindingType, number> {
  const counts = new Map(report?.unlisted);
  for (const { type } of report?.findings ?? []) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}

export function unlistedCount(report: PassReport | undefined): number {
  return [...(report?.unlisted?.values() ?? [])].reduce((sum, count) => sum + count, 0);
}

function isWorthRecording(
  loop: Loop,
  spec: ClusterSpec,
  pass: EndedPass,
  record: RunRecord,
  previous: RunRecord | undefined,
): boolean {
  if (previous === undefined || !isDueAtEveryTick(loop, spec) || isNews(pass, previous)) return true;
  // At the next tick, the previous record would be too old. After a correction of the clock, it may be from the future.
  const ageMs = record.startedAtMs - previous.startedAtMs;
  if (ageMs < 0 || ageMs >= RECORD_AT_LEAST_EVERY_MS - 5_000) return true;
  return !isDeepStrictEqual(withoutFigures(record), withoutFigures(previous));
}

/** Returns whether a pass changed something, has findings, failed, or would make other writes than the last recorded pass. */
export function isNews({ report, errors, wouldWrite }: EndedPass, previous: RunRecord | undefined): boolean {
  if (errors.length > 0 || report === undefined || report.changes.length > 0 || report.findings.length > 0) return true;
  return wouldWrite.length > 0 && !isDeepStrictEqual(cutLines(wouldWrite, 'writes'), previous?.wouldWrite);
}

function withoutFigures({ outcome, mode, observed, findings, state, events }: RunRecord) {
  return { outcome, mode, observed, findings, state, events };
}

/** Writes the run record if it is due or `always` is set. Returns the pass, marked as failed if the write fails. Never throws. */
export async function recordPass(
  environment: Pick<Environment, 'startDeadline' | 'table'>,
  loop: Loop,
  spec: ClusterSpec,
  pass: EndedPass,
  last: ReadRunRecord | undefined,
  { always = false }: { readonly always?: boolean } = {},
): Promise<EndedPass> {
  const record = recordOf(pass, last?.record);
  if (!always && !isWorthRecording(loop, spec, pass, record, last?.record)) return pass;
  try {
    // If another pass of the loop wrote its record first, that record stays.
    await withinDeadline(environment, RECORDING_MS, (signal) =>
      writeRunRecord(environment.table(signal), spec.name, loop, record, last?.item),
    );
    return pass;
  } catch (error) {
    return { ...pass, errors: [...pass.errors, error] };
  }
}
