import type { Loop } from '../cluster/cluster-spec.ts';
import { errorSentence, stackOfFault } from '../telemetry/describe-error.ts';
import { failedPassCounter, findingCounter } from '../telemetry/metrics.ts';
import type { Fields, Level, Telemetry } from '../telemetry/telemetry.ts';
import type { EndedPass } from './pass-record.ts';
import { isNews } from './pass-record.ts';

const MAX_ENTRIES = 20;

/** Counts the pass; its line is only written when it changed, found or failed something. */
export function tellPass(telemetry: Telemetry, loop: Loop, cluster: string, pass: EndedPass): void {
  const { report, errors, durationMs } = pass;
  const failed = errors.length > 0;
  countPass(telemetry, loop, failed);
  telemetry.duration(durationMs);
  for (const { type } of report?.findings ?? []) {
    const { name, labels } = findingCounter(loop, type);
    telemetry.count(name, 1, labels);
  }
  if (isNews(pass)) {
    telemetry.log(levelOf(pass), failed ? 'pass failed' : 'pass succeeded', { cluster, ...fieldsOf(pass) });
  }
}

/** A pass that could not even begin. */
export function tellUnbegun(telemetry: Telemetry, loop: Loop, cluster: string, error: unknown): void {
  countPass(telemetry, loop, true);
  telemetry.log('error', 'pass failed', { cluster, errors: [errorSentence(error)], stack: stackOfFault(error) });
}

/** Every pass is counted, those too that should have been. */
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

function fieldsOf({ passId, mode, durationMs, report, errors, wouldWrite, events }: EndedPass): Fields {
  return {
    passId,
    mode,
    durationMs,
    counts: report?.counts,
    // What only observes has changed nothing: its writes are those that it would have made.
    changes: mode === 'observe' ? undefined : entries(report?.changes),
    wouldWrite: entries(wouldWrite),
    findings: entries(report?.findings.map(({ type, message }) => `${type}: ${message}`)),
    errors: entries(errors.map(errorSentence)),
    stack: stackOfFault(errors[0]),
    eventsDropped: events?.dropped || undefined,
    eventErrors: entries(events?.errors.map(errorSentence)),
  };
}

/** Absent rather than empty, and never so long that the line is cut elsewhere. */
function entries(all: readonly string[] | undefined): readonly string[] | undefined {
  if (all === undefined || all.length === 0) return undefined;
  if (all.length <= MAX_ENTRIES) return all;
  return [...all.slice(0, MAX_ENTRIES), `and ${all.length - MAX_ENTRIES} more`];
}
