import { Command } from 'commander';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { importRanges, previewImport } from '../../lib/exchange/import-ranges.ts';
import type { Act } from '../act.ts';
import type { Cli, GlobalOptions } from '../cli.ts';
import { confirmed } from '../confirm.ts';
import { withExamples } from '../examples.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { unlessRefused } from '../ranges/exchange-refused.ts';
import { importLines, plainImport } from '../ranges/import-report.ts';
import { readInput } from '../read-input.ts';
import { registeredCluster } from '../registered.ts';
import { whateverIsRead } from '../unread-output.ts';

interface Options extends GlobalOptions {
  readonly filename: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const SUMMARY = 'Take over what a file says is taken in the ranges of a cluster';
const DESCRIPTION = `${SUMMARY}.

The file is one of "kbctl export ranges", or the object RangeAllocation of Kubernetes, as JSON or as API servers keep it in etcd. The difference is shown first. What is taken in the file is taken here from then on; nothing is released.

Nothing can be allocated in the cluster afterwards, until an enforcing pass of both repair loops has compared the ranges with its Services.`;

/** More than any ranges take; it is looked at closely afterwards. */
const MOST_BYTES = 2 * 1024 * 1024;
/** Longer than it takes with a table whose every write hangs once. */
const IMPORT_MS = 60_000;

/** `kbctl import ranges CLUSTER -f FILE|-`. */
export function importCommand(act: Act): Command {
  return new Command('import').description('Take over into the table what a file says').addCommand(importRangesOf(act));
}

function importRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .requiredOption('-f, --filename <file>', 'the file, or - for stdin')
    .option('--dry-run', 'show the difference alone; exit code 1 when there is one')
    .option('--yes', 'without asking, which is needed where there is no terminal')
    .action(act<Options>((cli, [name = ''], options) => importFrom(cli, name, options)));
  return withExamples(command, [
    'kbctl import ranges prod-eu-1 -f prod-eu-1.json --dry-run',
    'etcdctl get --print-value-only /registry/ranges/servicenodeports > servicenodeports',
    'kbctl import ranges prod-eu-1 -f servicenodeports',
  ]);
}

async function importFrom(cli: Cli, cluster: string, { filename, dryRun = false, yes }: Options): Promise<ExitCode> {
  const { output } = cli;
  const what = 'a file of ranges';
  const bytes = await readInput(filename, { mostBytes: MOST_BYTES, what, stdin: cli.output.terminal.in });
  const file = unlessRefused(readExchangeFile(bytes));
  const { table, tableUntil, clock } = dryRun ? await cli.openTable() : await cli.openForWriting();
  await registeredCluster(table, cluster);
  const preview = unlessRefused(await previewImport(table, cluster, file, clock.nowMs()));
  if (!output.isForPrograms) output.lines(importLines(preview, output.paint));
  for (const warning of preview.warnings) output.say(`warning: ${warning}`);
  const show = (fields: object) => {
    if (output.isForPrograms)
      output.document({ kind: 'RangeImport', cluster, dryRun, ...plainImport(preview), ...fields });
  };
  if (!preview.changes || dryRun) {
    show({ written: [] });
    if (!preview.changes) output.say('All of the file is here already: there is nothing to import.');
    return preview.changes ? EXIT.findings : EXIT.fine;
  }

  const question = `Import this into ${cluster}? Nothing can be allocated in it until both repair loops have had a pass.`;
  if (!(await confirmed(cli, question, { ...(yes !== undefined && { yes }) }))) return EXIT.findings;
  const { written, opensAtGeneration } = unlessRefused(
    await whateverIsRead(() =>
      // Once it has begun it is not cut off.
      importRanges(tableUntil(AbortSignal.timeout(IMPORT_MS)), cluster, file, { nowMs: clock.nowMs() }),
    ),
  );
  show({ written, opensAtGeneration });
  for (const line of whatFollows(cluster, written.length, opensAtGeneration)) output.say(line);
  return EXIT.fine;
}

function whatFollows(cluster: string, ranges: number, opensAtGeneration: number | undefined): string[] {
  if (opensAtGeneration === undefined) return ['All of the file is here already: nothing was written.'];
  return [
    `Imported into ${ranges === 1 ? 'one range' : `${ranges} ranges`}. Nothing can be allocated in ${cluster} until an enforcing pass of both repair loops has saved under generation ${opensAtGeneration}.`,
    'They run at their next ticks. To run them now:',
    `  kbctl repair cluster-ip ${cluster}`,
    `  kbctl repair node-port ${cluster}`,
  ];
}
