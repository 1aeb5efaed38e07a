import { Command, Option } from 'commander';
import { pauseAllClusters, withPause } from '../../lib/table/cluster-registration.ts';
import { type Pause, type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { DRY_RUN, parseDuration, userName } from '../options.ts';
import { describePause, warnOfPauseOfAll } from '../registered.ts';

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
const LONGEST_MS = 366 * DAY_MS;
const LONGEST_TEXT = 500;

const DESCRIPTION = `Stop the passes of clusters until a time, from their next tick on.

Nothing is changed in the clusters: endpoints stay unchanged. A pause ends at its time, or with "kbctl resume".`;

export function pauseCommand(act: Act): Command {
  return new Command('pause')
    .description(DESCRIPTION)
    .argument('[cluster...]', 'the names of clusters; all are checked before any is paused')
    .requiredOption('--reason <text>', 'the reason, which status shows')
    .addOption(
      new Option('--for <duration>', 'the duration, such as 90m, 2h or 3d')
        .argParser(parseDuration)
        .default(DAY_MS, '24h'),
    )
    .option('--by <name>', 'the person or system that pauses; default: your user name')
    .option('--all', 'every cluster of the table, and those registered later')
    .option('--dry-run', DRY_RUN)
    .action(act<PauseOptions>(pause));
}

export function resumeCommand(act: Act): Command {
  return new Command('resume')
    .description('Resume the passes of clusters, from their next tick on')
    .argument('[cluster...]', 'the names of clusters; all are checked before any is resumed')
    .option('--all', 'end the pause of all clusters; a cluster that is paused by name stays paused')
    .option('--dry-run', DRY_RUN)
    .action(act<ResumeOptions>((cli, names, options) => setPause(cli, names, options, () => undefined)));
}

async function pause(cli: Cli, names: readonly string[], options: PauseOptions): Promise<ExitCode> {
  const { for: forMs, reason, by = userName() } = options;
  if (forMs > LONGEST_MS) throw usageError('--for is at most 366d. To end the passes of a cluster, delete it.');
  for (const [option, text] of Object.entries({ reason, by })) {
    if (text.trim() === '') throw usageError(`--${option} is empty.`);
    if (text.length > LONGEST_TEXT) throw usageError(`--${option} is longer than ${LONGEST_TEXT} characters.`);
  }
  return setPause(cli, names, options, (nowMs) => ({ untilMs: nowMs + forMs, reason, by }));
}

async function setPause(
  cli: Cli,
  names: readonly string[],
  options: ResumeOptions,
  pauseAt: (nowMs: number) => Pause | undefined,
): Promise<ExitCode> {
  if (options.all && names.length > 0) throw usageError('Use either --all or the names of clusters.');
  if (!options.all && names.length === 0) throw usageError('Name the clusters, or use --all.');
  // The time comes from the table's clock, because the clock of this host may be wrong.
  const { table, clock } = await cli.openTable();
  const pause = pauseAt(clock.nowMs());
  if (options.all) return setPauseOfAll(cli, options, pause);
  const describe = (before: RegisteredCluster, after: RegisteredCluster | undefined) => {
    if (pause !== undefined) return describePause(pause);
    return before === after ? 'was not paused' : 'resumed';
  };
  const exitCode = await changeClusters(cli, names, { change: withPause(pause), describe }, options);
  warnOfPauseOfAll(cli, await readPauseOfAll(table), clock.nowMs());
  return exitCode;
}

async function setPauseOfAll(cli: Cli, { dryRun = false }: ResumeOptions, pause: Pause | undefined): Promise<ExitCode> {
  const { table } = await cli.openTable();
  const before = await readPauseOfAll(table);
  const changed = pause !== undefined || before !== undefined;
  if (changed && !dryRun) await pauseAllClusters(table, pause);
  const result =
    pause !== undefined
      ? describePause(pause)
      : changed
        ? 'resumed, except those that are paused by name'
        : 'were not paused';
  cli.output.object({ kind: 'PauseOfAll', dryRun, changed, paused: pause }, () => [
    `all clusters: ${result}${dryRun ? ' (dry run)' : ''}`,
  ]);
  return dryRun && changed ? EXIT.findings : EXIT.fine;
}
