import { Command } from 'commander';
import type { DoctorAnswer } from '../../lib/doctor/doctor.ts';
import type { DoctorLine } from '../../lib/doctor/line.ts';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { logOnly } from '../../lib/telemetry/telemetry.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { type ConnectionOptions, withConnectionOptions } from '../options.ts';
import type { Output } from '../output.ts';
import { notRegistered } from '../registered.ts';
import type { Style } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

/** The time limit for all clusters. The check of one cluster takes at most 20 s. */
const LONGEST_MS = 600_000;

const DESCRIPTION = `Check the table and the clusters, and print how to fix what is wrong

Checks the spec, kubeconfig, host names, API server, probes, rights and endpoints of each cluster from this machine,
with your credentials. The doctor function of the stack checks the same from where the loops run, and the queues of ticks.
Changes nothing in a cluster. Exit code 1 if a check failed.`;

export function doctorCommand(act: Act): Command {
  const command = new Command('doctor')
    .description(DESCRIPTION)
    .argument('[cluster]', 'the name of the cluster; default: all')
    .action(act<ConnectionOptions>((cli, [name], options) => run(cli, name, options)));
  return withConnectionOptions(command);
}

async function run(cli: Cli, name: string | undefined, options: ConnectionOptions): Promise<ExitCode> {
  if (options.kubeconfig !== undefined && name === undefined) {
    throw usageError('--kubeconfig needs the name of a cluster.');
  }
  const opened = await cli.openUnmeasured();
  if (name !== undefined) {
    // An error of the table is reported by the checks.
    const item = await opened.table.get(CLUSTERS, name).catch(() => 'unreadable');
    if (item === undefined) throw await notRegistered(opened.table, name);
  }
  const { doctor } = await import('../../lib/doctor/doctor.ts');
  const { passEnvironment } = await import('../pass-environment.ts');
  const telemetry = () => logOnly(() => {});
  await using passes = await passEnvironment(cli, opened, { ...options, telemetry });
  const environment = { ...passes.environment, loadKubeconfig: passes.loadKubeconfig };
  const event = name === undefined ? {} : { cluster: name };
  const answer = await doctor(event, { getRemainingTimeInMillis: () => LONGEST_MS, environment });
  if (cli.ended.aborted) return EXIT.interrupted;
  cli.output.object({ kind: 'Doctor', ...answer }, () => doctorLines(answer, cli.output));
  return answer.ok ? EXIT.fine : EXIT.findings;
}

const SIGNS: Readonly<Record<DoctorLine['level'], { readonly sign: string; readonly style: Style }>> = {
  ok: { sign: '✓', style: 'green' },
  warn: { sign: '!', style: 'yellow' },
  fail: { sign: '✗', style: 'red' },
};

function doctorLines({ lines }: DoctorAnswer, { columns = 120, paint }: Pick<Output, 'columns' | 'paint'>): string[] {
  return [...Map.groupBy(lines, ({ cluster }) => cluster)].flatMap(([cluster, checks]) => [
    ...(cluster === undefined ? [] : ['', paint('bold', cluster)]),
    ...checks.flatMap((line) => lineOf(line, columns, paint)),
  ]);
}

function lineOf({ check, level, message, fix }: DoctorLine, columns: number, paint: Output['paint']): string[] {
  const { sign, style } = SIGNS[level];
  const [first = '', ...others] = wrapped(`${check}: ${message}`, columns, '  ');
  const advice = fix === undefined ? [] : wrapped(fix, columns, '    → ');
  return [`${paint(style, sign)} ${first.slice(2)}`, ...others, ...advice];
}
