import { Argument, Command } from 'commander';
import { LOOPS, type Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Finding } from '../../lib/cluster/finding.ts';
import { pauseInForce } from '../../lib/dispatch/due.ts';
import { type EndedPass, unlistedCount } from '../../lib/dispatch/record-pass.ts';
import { findingHint } from '../../lib/status/explanations.ts';
import { type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import { describeError, errorSentence } from '../../lib/telemetry/describe-error.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, exitCodeOf, usageError } from '../errors.ts';
import { type ConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import type { Output, Plain } from '../output.ts';
import type { RanOnce } from '../passes/run-once.ts';
import { describePause, registeredCluster } from '../registered.ts';
import type { Style } from '../terminal.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly dryRun?: boolean;
  readonly rebuild?: boolean;
  readonly evenIfPaused?: boolean;
}

const SUMMARY = 'Run one pass of a loop now, and print what it did and why';
const DESCRIPTION = `${SUMMARY}.

The pass runs on this machine, with your credentials and for the stack that owns the cluster. kubernetes-service probes the API servers from here: use --dry-run where this machine cannot reach them.

--rebuild replaces a corrupt snapshot by what the Services claim. Leaks and holds in it are lost. Nothing can be allocated from the range until it is saved.`;

/** `kbctl run-once LOOP CLUSTER`. */
export function runOnceCommand(act: Act): Command {
  const command = new Command('run-once')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .addArgument(new Argument('<loop>', 'the loop').choices(LOOPS))
    .argument('<cluster>', 'the name of the cluster')
    .option('--dry-run', 'print what a pass would change, and write nothing; exit code 1 if it would change anything')
    .option('--rebuild', 'replace a corrupt snapshot (cluster-ip-repair and node-port-repair)')
    .option('--even-if-paused', 'run while the cluster is paused');
  const action = act<Options>((cli, [loop, name = ''], options) => runPassOnce(cli, loop as Loop, name, options));
  return withExamples(withConnectionOptions(command).action(action), [
    'kbctl run-once cluster-ip-repair prod-eu-1 --dry-run',
    'kbctl run-once kubernetes-service prod-eu-1',
    'kbctl run-once node-port-repair prod-eu-1 --rebuild --dry-run',
  ]);
}

async function runPassOnce(cli: Cli, loopId: Loop, name: string, options: Options): Promise<ExitCode> {
  const { dryRun = false, rebuild = false } = options;
  const { runOnce, definitionOf, rebuildOf } = await import('../passes/run-once.ts');
  const loop = rebuild ? rebuildOf(loopId) : definitionOf(loopId);
  if (loop === undefined) throw usageError(`--rebuild is for cluster-ip-repair and node-port-repair, not ${loopId}.`);
  const opened = dryRun ? await cli.openTable() : await cli.openForWriting();
  const cluster = await registeredCluster(opened.table, name);
  await heedPause(cli, loopId, cluster, options);
  heedMode(cli, cluster, options);
  const { passEnvironment } = await import('../pass-environment.ts');
  const stack = cluster.owner?.stack;
  const { environment, close } = await passEnvironment(cli, opened, {
    ...options,
    ...(stack !== undefined && { stack }),
  });
  const progress = cli.progress(`running ${loopId}`);
  let ran: RanOnce;
  try {
    ran = await runOnce(environment, { cluster, loop, dryRun });
  } finally {
    progress.end();
    await close();
  }
  const { pass } = ran;
  if (pass.report === undefined) return notRun(cli, name, pass.errors[0]);

  const facts = { cluster: name, loop: loopId, dryRun };
  cli.output.object(plainPass(facts, ran), () => passLines(facts, ran, cli.output.paint));
  if (rebuild && pass.errors.length === 0) {
    const tense = dryRun ? 'would be' : 'are';
    cli.output.say(`Leaks, their strikes and holds of the corrupt snapshot ${tense} lost.`);
  }
  return cli.ended.aborted ? EXIT.interrupted : exitCodeOfPass(facts, pass);
}

/** Refuses a paused cluster, unless --even-if-paused shows that the caller knows of it. */
async function heedPause(cli: Cli, loop: Loop, cluster: RegisteredCluster, options: Options): Promise<void> {
  const { table } = await cli.openTable();
  const { name } = cluster.spec;
  const pause = pauseInForce([await readPauseOfAll(table), cluster.paused], await cli.nowMs());
  if (pause === undefined) return;
  const paused = `${name} is ${describePause(pause)}`;
  if (options.dryRun || options.evenIfPaused) {
    cli.output.say(paused);
    return;
  }
  throw configurationError(
    `${paused}. Nothing was done. To run a pass anyway: kbctl run-once ${loop} ${name} --even-if-paused`,
  );
}

function heedMode(cli: Cli, { spec, owner }: RegisteredCluster, { dryRun, rebuild }: Options): void {
  if (dryRun) return;
  if (spec.mode === 'observe' && rebuild) {
    throw configurationError(
      `${spec.name} is in mode observe, in which nothing is written: use --dry-run to see what would be, or "kbctl cluster set-mode enforce ${spec.name}".`,
    );
  }
  if (spec.mode === 'observe') {
    cli.output.say(`${spec.name} is in mode observe: the pass writes nothing, and reports what it would write.`);
  }
  if (owner !== undefined) cli.output.say(`The pass runs for stack ${owner.stack}, which owns ${spec.name}.`);
}

/** The pass failed before it decided anything, and is not recorded. */
function notRun(cli: Cli, name: string, error: unknown): ExitCode {
  if (cli.ended.aborted) {
    cli.output.say('Interrupted before anything was decided: nothing was changed.');
    return EXIT.interrupted;
  }
  if (error instanceof Error && 'code' in error && error.code === 'NotCorrupt') {
    throw configurationError(`${error.message}. "kbctl get ranges ${name}" shows them.`);
  }
  throw error;
}

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
function passLines(facts: PassFacts, ran: RanOnce, paint: Output['paint']): string[] {
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

function plainPass({ cluster, loop, dryRun }: PassFacts, { pass, nextStrikeAtMs }: RanOnce) {
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

function exitCodeOfPass({ dryRun }: PassFacts, pass: EndedPass): ExitCode {
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
