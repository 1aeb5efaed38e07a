import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Finding } from '../../lib/cluster/finding.ts';
import { type EndedPass, unlistedCount } from '../../lib/dispatch/record-pass.ts';
import { findingHint } from '../../lib/status/explanations.ts';
import { describeError, errorSentence } from '../../lib/telemetry/describe-error.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../errors.ts';
import type { Output, Plain } from '../output.ts';
import type { Style } from '../terminal.ts';
import type { RanOnce } from './run-once.ts';

export interface PassFacts {
  readonly cluster: string;
  readonly loop: Loop;
  readonly dryRun: boolean;
}

const MOST_LINES = 20;
const EVENT = /^(create|patch) Event /;

type Group = 'freed' | 'entered' | 'found';
const STYLES: Readonly<Record<Group, Style>> = { freed: 'green', entered: 'green', found: 'yellow' };

/** What the pass changed, or would have, and what is left to do. */
export function passLines(facts: PassFacts, ran: RanOnce, paint: Output['paint']): string[] {
  const { pass } = ran;
  const { cluster, loop } = facts;
  const observed = pass.mode === 'observe';
  const findings = pass.report?.findings ?? [];
  const unlisted = unlistedCount(pass.report);
  const lines = [
    ...changesOf(pass).map((change) => (observed ? paint('cyan', `  would ${change}`) : `  ${change}`)),
    ...(['freed', 'entered', 'found'] as const).flatMap((group) => groupLines(group, findings, observed, facts, paint)),
    ...(unlisted > 0 ? [paint('yellow', `  and ${unlisted} more findings, which are not listed`)] : []),
    ...leftLines(ran),
    ...pass.errors.map((error) => paint('red', `  failed: ${errorSentence(error)}`)),
  ];
  const title = `${cluster} ${loop}: ${titleOf(facts, pass)}`;
  return [title, ...(lines.length > 0 ? lines : [paint('dim', '  nothing to do')])];
}

export function plainPass({ cluster, loop, dryRun }: PassFacts, { pass, nextStrikeAtMs }: RanOnce) {
  const { passId, mode, startedAtMs, durationMs, report, errors } = pass;
  const observed = mode === 'observe';
  const changes = changesOf(pass);
  return {
    kind: 'Pass',
    cluster,
    loop,
    dryRun,
    outcome: errors.length > 0 ? 'failed' : 'succeeded',
    wrote: !observed,
    passId,
    startedAt: new Date(startedAtMs).toISOString(),
    durationMs,
    changes: observed ? [] : changes,
    wouldChange: observed ? changes : [],
    findings: (report?.findings ?? []).map((finding): Plain => {
      const { type, message, item, service } = finding;
      return { type, message, item, service, mend: findingHint(finding, { name: cluster }) };
    }),
    unlistedFindings: unlistedCount(report),
    counts: { ...report?.counts },
    ...(nextStrikeAtMs !== undefined && { nextStrikeAt: new Date(nextStrikeAtMs).toISOString() }),
    errors: errors.map((error): Plain => ({ ...describeError(error) })),
  };
}

export function exitCodeOfPass({ dryRun }: PassFacts, pass: EndedPass): ExitCode {
  const [error] = pass.errors;
  if (error !== undefined) return exitCodeOf(error) ?? EXIT.findings;
  const wouldChange = dryRun && pass.wouldWrite.some((description) => !EVENT.test(description));
  return wouldChange || (pass.report?.findings ?? []).length > 0 ? EXIT.findings : EXIT.fine;
}

function titleOf({ dryRun }: PassFacts, { mode, report }: EndedPass): string {
  const services = report?.counts['services'];
  const seen = services === undefined ? '' : `, ${services} ${services === 1 ? 'Service' : 'Services'} seen`;
  if (dryRun) return `dry run, nothing was written${seen}`;
  return mode === 'observe' ? `one pass in mode observe, nothing was written${seen}` : `one pass${seen}`;
}

/** Events are only counted: each repeats a finding. */
function changesOf({ mode, wouldWrite, report }: EndedPass): string[] {
  if (mode !== 'observe') return [...(report?.changes ?? [])];
  const described = [...new Set(wouldWrite)];
  const events = described.filter((description) => EVENT.test(description)).length;
  const counted = events === 0 ? [] : [`write ${events} ${events === 1 ? 'event' : 'events'}`];
  return [...described.filter((description) => !EVENT.test(description)), ...counted];
}

function groupOf({ type }: Finding): Group {
  return type === 'leak' ? 'freed' : type === 'repair' ? 'entered' : 'found';
}

function groupLines(
  group: Group,
  findings: readonly Finding[],
  observed: boolean,
  { cluster }: PassFacts,
  paint: Output['paint'],
): string[] {
  const own = findings.filter((finding) => groupOf(finding) === group);
  if (own.length === 0) return [];
  const title = {
    freed: observed ? 'Would free' : 'Freed',
    entered: observed ? 'Would enter' : 'Entered',
    found: 'Found',
  };
  const shown = own
    .slice(0, MOST_LINES)
    .flatMap((finding) => [
      `    ${group === 'found' ? `${finding.type}: ${finding.message}` : finding.message}`,
      ...(group === 'found' ? [`      resolution: ${findingHint(finding, { name: cluster })}`] : []),
    ]);
  const more = own.length - MOST_LINES;
  return [
    `  ${paint(STYLES[group], `${title[group]}:`)}`,
    ...shown,
    ...(more > 0 ? [`    ... and ${more} more (-o json has them all)`] : []),
  ];
}

function leftLines({ pass, nextStrikeAtMs }: RanOnce): string[] {
  const { mayHaveLeaked = 0, secondaryMayHaveLeaked = 0 } = pass.report?.counts ?? {};
  const left = mayHaveLeaked + secondaryMayHaveLeaked;
  if (left === 0) return [];
  const rule = `the third pass in a row that counts ${left === 1 ? 'it as a leak frees it' : 'them as leaks frees them'}`;
  const lines = [`  Left: ${left} allocated without a Service; ${rule}`];
  if (nextStrikeAtMs === undefined) return lines;
  const at = new Date(nextStrikeAtMs).toISOString();
  return [...lines, `    this pass does not count, since one counted too recently; the next can count at ${at}`];
}
