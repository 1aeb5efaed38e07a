import type { Finding } from '../../lib/cluster/finding.ts';
import { type EndedPass, recordPass, unlistedCount } from '../../lib/dispatch/record-pass.ts';
import { errorTexts } from '../../lib/dispatch/report-pass.ts';
import { runPass } from '../../lib/dispatch/run-pass.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { writesOf } from '../../lib/loops/writes.ts';
import { PASS_BUDGET_MS, withDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../errors.ts';
import { hintFor } from '../explain/explanations.ts';
import type { Output } from '../output.ts';

/**
 * Runs a pass as the loop's function does. A failed pass that changed nothing is not recorded, because the cause of the failure
 * may be only the connection from this host.
 */
export async function runOnce(
  environment: Environment,
  loop: LoopDefinition,
  cluster: RegisteredCluster,
  { dryRun, evenIfPaused }: { readonly dryRun: boolean; readonly evenIfPaused: boolean },
): Promise<EndedPass> {
  const { spec } = cluster;
  return withDeadline(environment, PASS_BUDGET_MS[loop.id], async (signal) => {
    const startedAtMs = environment.nowMs();
    const last = await readRunRecord(environment.table(signal), spec.name, loop.id);
    const { log } = environment.telemetry({ loop: loop.id });
    const pass = await runPass(environment, {
      loop,
      cluster,
      previous: last?.record,
      startedAtMs,
      signal,
      warn: (text) => log('warn', text, { cluster: spec.name }),
      writes: dryRun ? 'none' : writesOf(spec.mode),
      evenIfPaused,
    });
    const isIdle = pass.errors.length > 0 && !pass.report?.changes.length;
    if (dryRun || isIdle) return pass;
    return recordPass(environment, loop.id, spec, pass, last, { always: true });
  });
}

interface RanPass {
  readonly cluster: string;
  readonly loop: Loop;
  readonly dryRun: boolean;
  readonly pass: EndedPass;
}

/** Matches writes of events, which do not count as changes because each event repeats a finding. */
const EVENT = /^(create|patch) Event /;

export function exitCodeOfPass({ dryRun, pass }: RanPass): ExitCode {
  const [error] = pass.errors;
  if (error !== undefined) return exitCodeOf(error) ?? EXIT.findings;
  const wouldChange = dryRun && pass.wouldWrite.some((description) => !EVENT.test(description));
  return wouldChange || (pass.report?.findings ?? []).length > 0 ? EXIT.findings : EXIT.fine;
}

export function passLines(ran: RanPass, paint: Output['paint']): string[] {
  const { cluster, loop, pass } = ran;
  const observed = pass.mode === 'observe';
  const { findings = [] } = pass.report ?? {};
  const { leak: freed = [], problem: problems = [] } = Object.groupBy(findings, ({ type }) =>
    type === 'leak' ? 'leak' : 'problem',
  );
  const unlisted = unlistedCount(pass.report);
  const listed = `${findings.length} of ${findings.length + unlisted}`;
  const lines = [
    ...changesOf(pass).map((change) => (observed ? paint('cyan', `  would ${change}`) : `  ${change}`)),
    ...findingLines(observed ? 'Would free:' : 'Freed:', freed, cluster, paint),
    ...findingLines('Found:', problems, cluster, paint),
    ...(unlisted > 0 ? [paint('yellow', `  listed ${listed} findings; correct these, and run the pass again`)] : []),
    ...leftLines(pass),
    ...errorTexts(pass.errors).map((text) => paint('red', `  failed: ${text}`)),
  ];
  const title = `${cluster} ${loop}: ${titleOf(ran)}`;
  return [title, ...(lines.length > 0 ? lines : [paint('dim', '  nothing to do')])];
}

/** Returns the pass as `-o json` prints it. */
export function plainPass({ cluster, loop, dryRun, pass }: RanPass) {
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
    startedAtMs,
    durationMs,
    changes: observed ? [] : changes,
    wouldChange: observed ? changes : [],
    findings: (report?.findings ?? []).map((finding) => {
      const { type, message, item, service } = finding;
      return { type, message, item, service, resolution: hintFor(type, { name: cluster }, finding) };
    }),
    unlistedFindings: unlistedCount(report),
    counts: report?.counts ?? {},
    errors: errors.map(describeError),
  };
}

function titleOf({ dryRun, pass: { mode, report } }: RanPass): string {
  const services = report?.counts['services'];
  const seen = services === undefined ? '' : `, ${services} ${services === 1 ? 'Service' : 'Services'} seen`;
  if (dryRun) return `dry run, nothing was written${seen}`;
  return mode === 'observe' ? `one pass in mode observe, nothing was written to the cluster${seen}` : `one pass${seen}`;
}

function changesOf({ mode, wouldWrite, report }: EndedPass): string[] {
  if (mode !== 'observe') return [...(report?.changes ?? [])];
  const described = [...new Set(wouldWrite)];
  const changes = described.filter((description) => !EVENT.test(description));
  const events = described.length - changes.length;
  return events === 0 ? changes : [...changes, `write ${events} ${events === 1 ? 'event' : 'events'}`];
}

function findingLines(title: string, findings: readonly Finding[], name: string, paint: Output['paint']): string[] {
  if (findings.length === 0) return [];
  return [
    `  ${paint('yellow', title)}`,
    ...findings.flatMap((finding) => [
      `    ${finding.type}: ${finding.message}`,
      `      resolution: ${hintFor(finding.type, { name }, finding)}`,
    ]),
  ];
}

function leftLines({ report }: EndedPass): string[] {
  const { mayHaveLeaked = 0, secondaryMayHaveLeaked = 0 } = report?.counts ?? {};
  const left = mayHaveLeaked + secondaryMayHaveLeaked;
  if (left === 0) return [];
  return [
    `  Left: ${left} allocated without a Service; the third pass in a row that counts a leak frees it`,
    '    a pass counts only two thirds of an interval after the last one that counted',
  ];
}
