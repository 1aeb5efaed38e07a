import { Command, Option } from 'commander';
import { pauseAllClusters, pauseCluster } from '../../lib/table/cluster-registration.ts';
import { type Pause, type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';

import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { parseDuration, userName, withExamples } from '../options.ts';
import { pausedWords, plainPause, tellPauseOfAll } from '../registered.ts';

interface ResumeOptions extends GlobalOptions {
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

interface PauseOptions extends ResumeOptions {
  readonly for: number;
  readonly reason: string;
  readonly by?: string;
}

const DAY_MS = 24 * 3_600_000;
/** As good as for ever, and still a date. */
const LONGEST_MS = 366 * DAY_MS;
const LONGEST_TEXT = 500;

const SUMMARY = 'Hold the passes of clusters for a while, from their next tick on';
const DESCRIPTION = `${SUMMARY}.

Nothing is changed in the clusters: their endpoints stay as they are. A pause ends by itself at its time, or with "kbctl resume".`;

/** `kbctl pause [CLUSTER... | --all] --reason TEXT [--for 2h]`. */
export function pauseCommand(act: Act): Command {
  const command = new Command('pause')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('[cluster...]', 'their names; all are looked up before any is paused')
    .requiredOption('--reason <text>', 'why: whoever wonders reads it')
    .addOption(
      new Option('--for <duration>', 'how long, such as 90m, 2h or 3d').argParser(parseDuration).default(DAY_MS, '24h'),
    )
    .option('--by <name>', 'who holds them; default: your name on this machine')
    .option('--all', 'every cluster of the table, also those that are registered later')
    .option('--dry-run', 'change nothing, and say what would be; exit code 1 when anything would')
    .action(act<PauseOptions>((cli, names, options) => hold(cli, names, options, checkedTerms(options))));
  return withExamples(command, [
    'kbctl pause prod-eu-1 --for 2h --reason "an upgrade of the control plane"',
    'kbctl pause --all --for 30m --reason "the table is restored"',
  ]);
}

/** `kbctl resume [CLUSTER... | --all]`. */
export function resumeCommand(act: Act): Command {
  const command = new Command('resume')
    .description('Let the passes of clusters go on, from their next tick on')
    .argument('[cluster...]', 'their names; all are looked up before any is resumed')
    .option('--all', 'end the pause of all; that of a single cluster goes on')
    .option('--dry-run', 'change nothing, and say what would be; exit code 1 when anything would')
    .action(act<ResumeOptions>((cli, names, options) => hold(cli, names, options, undefined)));
  return withExamples(command, ['kbctl resume prod-eu-1', 'kbctl resume --all']);
}

interface Terms extends Omit<Pause, 'untilMs'> {
  readonly forMs: number;
}

function checkedTerms({ for: forMs, reason, by = userName() }: PauseOptions): Terms {
  if (forMs > LONGEST_MS) throw usageError('--for is at most 366d: to end the passes of a cluster, delete it.');
  for (const [option, text] of Object.entries({ reason, by })) {
    if (text.trim() === '') throw usageError(`--${option} is empty: say something that helps whoever wonders.`);
    if (text.length > LONGEST_TEXT) throw usageError(`--${option} is longer than ${LONGEST_TEXT} characters.`);
  }
  return { forMs, reason, by };
}

/** @param terms `undefined`: they go on. */
async function hold(
  cli: Cli,
  names: readonly string[],
  options: ResumeOptions,
  terms: Terms | undefined,
): Promise<ExitCode> {
  if (options.all && names.length > 0) throw usageError('--all is every cluster: leave the names out, or --all.');
  if (!options.all && names.length === 0) throw usageError('Which clusters? Name them, or say --all.');
  // A brake works by any clock: what it writes is corrected.
  const pause = terms && pauseFrom(terms, await cli.nowMs());
  if (options.all) return holdAll(cli, options, pause);
  const { exitCode } = await changeClusters(
    cli,
    names,
    {
      next: (cluster) => (pause === undefined && cluster.paused === undefined ? cluster : held(cluster, pause)),
      write: (table, name) => pauseCluster(table, name, pause),
      words: (before, after) => {
        if (pause !== undefined) return pausedWords(pause);
        return before === after ? 'was not paused' : 'goes on';
      },
    },
    options,
  );
  const { table, clock } = await cli.openTable();
  tellPauseOfAll(cli, await readPauseOfAll(table), clock.nowMs());
  return exitCode;
}

function pauseFrom({ forMs, reason, by }: Terms, nowMs: number): Pause {
  return { untilMs: nowMs + forMs, reason, by };
}

async function holdAll(cli: Cli, { dryRun = false }: ResumeOptions, pause: Pause | undefined): Promise<ExitCode> {
  const { table } = await cli.openTable();
  const before = await readPauseOfAll(table);
  const changed = pause !== undefined || before !== undefined;
  if (changed && !dryRun) await pauseAllClusters(table, pause);
  const words =
    pause !== undefined
      ? pausedWords(pause)
      : changed
        ? 'go on, but for those that are paused themselves'
        : 'were not paused as a whole';
  cli.output.object(
    { kind: 'PauseOfAll', dryRun, changed, ...(pause !== undefined && { paused: plainPause(pause) }) },
    () => [`all clusters: ${words}${dryRun ? ' (dry run)' : ''}`],
  );
  return dryRun && changed ? EXIT.findings : EXIT.fine;
}

function held({ paused: _, ...cluster }: RegisteredCluster, pause: Pause | undefined): RegisteredCluster {
  return { ...cluster, ...(pause !== undefined && { paused: pause }) };
}
