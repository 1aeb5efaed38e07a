import type { Loop } from '../cluster/cluster-spec.ts';
import { errorSentence, stackOfFault } from '../telemetry/describe-error.ts';
import {
  failedPassCounter,
  findingCounter,
  type Level,
  type LogFields,
  samplesOf,
  type Telemetry,
} from '../telemetry/telemetry.ts';
import { type EndedPass, foundByType, isNews } from './record-pass.ts';

/** From this percentage on, the use of a range is always logged. */
const FULL_PERCENT = 80;

/** Counts the pass; its line is only written when it changed, found or failed something. */
export function logPass(telemetry: Telemetry, loop: Loop, cluster: string, pass: EndedPass): void {
  const { report, errors, durationMs, events } = pass;
  const failed = errors.length > 0;
  countPass(telemetry, loop, failed);
  telemetry.sample('durationMs', durationMs);
  for (const { name, value } of samplesOf(report?.counts ?? {})) {
    telemetry.sample(name, value);
    if (name === 'fullestRangePercent' && value >= FULL_PERCENT) {
      telemetry.log('warn', 'range filling up', { cluster, fullest: [`${cluster}: ${value} per cent`] });
    }
  }
  for (const [type, found] of foundByType(report)) {
    const { name, labels } = findingCounter(loop, type);
    telemetry.count(name, found, labels);
  }
  const { lateProbes = 0 } = report?.counts ?? {};
  if (lateProbes > 0) telemetry.count('lateProbes', lateProbes);
  if (pass.credentialEndsSoon) telemetry.count('credentialsEnding', 1);
  if (events !== undefined && events.dropped > 0) telemetry.count('eventsDropped', events.dropped);
  if (isNews(pass)) {
    telemetry.log(levelOf(pass), failed ? 'pass failed' : 'pass succeeded', { cluster, ...fieldsOf(pass) });
  }
}

export function logUnstartedPass(telemetry: Telemetry, loop: Loop, cluster: string, error: unknown): void {
  countPass(telemetry, loop, true);
  telemetry.log('error', 'pass failed', { cluster, errors: [errorSentence(error)], stack: stackOfFault(error) });
}

/** Counts every pass, also those that could not run. */
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
    errors: someOf(errors.map(errorSentence)),
    stack: stackOfFault(errors[0]),
    eventsDropped: events?.dropped || undefined,
    eventErrors: someOf(events?.errors.map(errorSentence)),
  };
}

const MAX_ENTRIES = 20;

/** Returns the entries of a log field: `undefined` instead of none, and at most as many as a line can have. */
export function someOf(all: readonly string[] | undefined): readonly string[] | undefined {
  if (all === undefined || all.length === 0) return undefined;
  if (all.length <= MAX_ENTRIES) return all;
  return [...all.slice(0, MAX_ENTRIES), `and ${all.length - MAX_ENTRIES} more`];
}
