import { Command } from 'commander';
import { popCount } from '../../lib/allocator/snapshot-bytes.ts';
import type { Hold } from '../../lib/cluster/hold.ts';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { type ImportPreview, importRanges, previewImport } from '../../lib/exchange/import-ranges.ts';
import type { ImportPlan } from '../../lib/exchange/plan-import.ts';
import { confirmed } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { readInput } from '../files.ts';
import { withExamples } from '../options.ts';
import type { Output, Plain } from '../output.ts';
import { itemsIn, itemsText, nameOfKey, unlessRefused } from '../ranges/range-words.ts';
import { registeredCluster } from '../registered.ts';
import { completeAlways, type Style } from '../terminal.ts';

interface Options extends GlobalOptions {
  readonly filename: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const SUMMARY = 'Import the allocated items of a file into the ranges of a cluster';
const DESCRIPTION = `${SUMMARY}.

The file is one of "kbctl export ranges", or a RangeAllocation object of Kubernetes, as JSON or as in etcd. The difference is printed first. Items that are allocated in the file become allocated here; nothing is released.

Afterwards nothing can be allocated in the cluster until an enforcing pass of both repair loops has compared the ranges with its Services.`;

/** More than any ranges need. */
const MOST_BYTES = 2 * 1024 * 1024;
/** Longer than an import whose every write times out once. */
const IMPORT_MS = 60_000;

/** `kbctl import ranges CLUSTER -f FILE|-`. */
export function importCommand(act: Act): Command {
  return new Command('import').description('Import data of a file into the table').addCommand(importRangesOf(act));
}

function importRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .requiredOption('-f, --filename <file>', 'the file, or - for stdin')
    .option('--dry-run', 'print only the difference; exit code 1 if there is one')
    .option('--yes', 'import without confirmation')
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
    if (!preview.changes) output.say('Nothing to import: the table contains everything in the file.');
    return preview.changes ? EXIT.findings : EXIT.fine;
  }

  const question = `Import this into ${cluster}? Nothing can be allocated there until a pass of both repair loops.`;
  if (!(await confirmed(cli, question, yes))) return EXIT.findings;
  const { written, opensAtGeneration } = unlessRefused(
    await completeAlways(() =>
      // A started import is not interrupted.
      importRanges(tableUntil(AbortSignal.timeout(IMPORT_MS)), cluster, file, { nowMs: clock.nowMs() }),
    ),
  );
  show({ written, opensAtGeneration });
  for (const line of nextSteps(cluster, written.length, opensAtGeneration)) output.say(line);
  return EXIT.fine;
}

function nextSteps(cluster: string, ranges: number, opensAtGeneration: number | undefined): string[] {
  if (opensAtGeneration === undefined) return ['Nothing was written: the table contains everything in the file.'];
  return [
    `Imported into ${ranges === 1 ? 'one range' : `${ranges} ranges`}. Nothing can be allocated in ${cluster} until an enforcing pass of both repair loops has saved generation ${opensAtGeneration}.`,
    'They run at their next ticks. To run them now:',
    `  kbctl run-once cluster-ip-repair ${cluster}`,
    `  kbctl run-once node-port-repair ${cluster}`,
  ];
}

/** Describes what an import changes in each range. */
function importLines({ plans }: ImportPreview, paint: Output['paint']): string[] {
  return plans.flatMap((plan) => [paint('bold', `${nameOfKey(plan.key)} ${plan.range}`), ...rangeLines(plan, paint)]);
}

function plainImport({ plans, warnings, changes }: ImportPreview): { readonly [field: string]: Plain } {
  return {
    changes,
    warnings: [...warnings],
    ranges: plans.map((plan) => ({
      key: plan.key,
      range: plan.range,
      toSet: itemsIn(plan.range, plan.toSet),
      alreadySet: itemsIn(plan.range, plan.alreadySet),
      onlyHere: itemsIn(plan.range, plan.onlyHere),
      strikesCleared: itemsIn(plan.range, plan.struck),
      holds: plan.holds.map(({ items, owner, untilMs, takenUpBy, requestId }) => ({
        items: [...items],
        owner,
        until: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
        takenUpBy,
        requestId,
      })),
      holdsLeftOut: plan.holdsLeftOut,
    })),
  };
}

function rangeLines(plan: ImportPlan, paint: Output['paint']): string[] {
  const line = (title: string, bits: Uint8Array, style?: Style): string => {
    const text =
      `  ${title.padEnd(12)} ${String(popCount(bits)).padStart(6)}  ${itemsText(plan.range, bits)}`.trimEnd();
    return style === undefined || popCount(bits) === 0 ? text : paint(style, text);
  };
  return [
    line('to allocate', plan.toSet, 'green'),
    line('allocated', plan.alreadySet),
    line('only here', plan.onlyHere),
    ...(popCount(plan.struck) === 0 ? [] : [line('not leaked', plan.struck)]),
    ...plan.holds.map(holdLine),
    ...(plan.holdsLeftOut === 0 ? [] : [`  holds not imported: ${plan.holdsLeftOut}, allocated already or expired`]),
  ];
}

function holdLine({ items, owner, untilMs }: Hold): string {
  const until = untilMs === undefined ? 'without end' : `until ${new Date(untilMs).toISOString()}`;
  return `  held         ${String(items.length).padStart(6)}  by ${owner} ${until}`;
}
