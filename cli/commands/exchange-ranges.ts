import { createReadStream } from 'node:fs';
import { Command, Option } from 'commander';
import { RANGE_NAMES, type RangeName } from '../../lib/allocate/request.ts';
import { popCount } from '../../lib/allocator/snapshot-bytes.ts';
import type { Hold } from '../../lib/cluster/hold.ts';
import { clusterRangesToJson } from '../../lib/exchange/cluster-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { asRangeAllocation, type Exported, exportRanges } from '../../lib/exchange/export-ranges.ts';
import { type ImportPreview, importRanges, previewImport } from '../../lib/exchange/import-ranges.ts';
import type { ImportPlan } from '../../lib/exchange/plan-import.ts';
import { rangeAllocationToJson, rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import { formatAge } from '../../lib/status/age.ts';
import { confirmed } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, failureCode, usageError } from '../errors.ts';
import { writeWhole } from '../files.ts';
import { withExamples } from '../options.ts';
import type { Output } from '../output.ts';
import { itemsIn, keyOf, nameOfKey, unlessRefused } from '../ranges/range-words.ts';
import { namesOf, registeredCluster } from '../registered.ts';
import { completeAlways, type Style } from '../terminal.ts';

const FORMS = ['json', 'range-allocation', 'etcd'] as const;

interface ExportOptions extends GlobalOptions {
  readonly range?: RangeName;
  readonly as: (typeof FORMS)[number];
  readonly filename?: string;
  readonly force?: boolean;
}

const EXPORT_DESCRIPTION = `Export the ranges of a cluster to a file: allocated items and holds.

--as json contains every range with its holds. --as range-allocation is the RangeAllocation object of Kubernetes as JSON, and --as etcd the bytes of an API server in etcd under /registry/ranges/: one range each, without holds.

A range that no pass has saved recently is refused: an address could be allocated twice from such a copy.`;

export function exportCommand(act: Act): Command {
  return new Command('export').description('Export data of the table to a file').addCommand(exportRangesOf(act));
}

function exportRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .description(EXPORT_DESCRIPTION)
    .argument('<cluster>', 'the name of the cluster')
    .addOption(new Option('--range <name>', 'only this range; default: all, only with --as json').choices(RANGE_NAMES))
    .addOption(new Option('--as <form>', 'the format of the file').choices(FORMS).default('json'))
    .option('-f, --filename <file>', 'the file, which is overwritten; default: stdout')
    .option('--force', 'export a range that would be refused, with a warning')
    .action(act<ExportOptions>((cli, [name = ''], options) => exportTo(cli, name, options)));
  return withExamples(command, [
    'kbctl export ranges prod-eu-1 -f prod-eu-1.json',
    'kbctl export ranges prod-eu-1 --range servicenodeports --as etcd -f servicenodeports',
    'etcdctl put /registry/ranges/servicenodeports < servicenodeports',
  ]);
}

async function exportTo(cli: Cli, cluster: string, options: ExportOptions): Promise<ExitCode> {
  const { output } = cli;
  checkOptions(cli, options);
  const { table } = await cli.openTable();
  await registeredCluster(table, cluster);
  const result = await exportRanges(table, cluster, {
    nowMs: await cli.nowMs(),
    ...(options.range !== undefined && { keys: [keyOf(options.range)] }),
    force: options.force === true,
  });
  const exported = unlessRefused(withForceHint(result));
  const { content, warnings } = written(exported, options);
  if (options.filename === undefined) output.data(content);
  else await writeWhole(options.filename, content);
  for (const warning of [...exported.warnings, ...warnings]) output.say(`warning: ${warning}`);
  for (const line of describeRanges(exported)) output.say(line);
  return EXIT.fine;
}

function checkOptions({ output }: Cli, { as, range, filename }: ExportOptions): void {
  if (output.format === 'yaml') {
    throw usageError('YAML is not supported: choose a format with --as.');
  }
  if (as !== 'json' && range === undefined) {
    throw usageError(`--as ${as} contains one range: choose it with --range ${RANGE_NAMES.join(', ')}.`);
  }
  if (as === 'etcd' && filename === undefined && output.terminal.out.isTTY) {
    throw usageError('--as etcd is binary: use -f FILE or a pipe.');
  }
}

/** An old copy can allocate an address twice, and is sometimes all there is. */
function withForceHint(result: Exported | ExchangeError): Exported | ExchangeError {
  if (!(result instanceof ExchangeError) || (result.code !== 'NotCurrent' && result.code !== 'NoRecord')) return result;
  return new ExchangeError(result.code, `${result.message} Use --force to export it anyway.`);
}

function written(
  { clusterRanges }: Exported,
  { as, range }: ExportOptions,
): { readonly content: string | Uint8Array; readonly warnings: readonly string[] } {
  if (as === 'json') return { content: clusterRangesToJson(clusterRanges), warnings: [] };
  const [only] = clusterRanges.ranges;
  if (only === undefined) {
    throw configurationError(`No pass has saved ${range} yet: there is nothing to export.`);
  }
  const { allocation, warnings } = asRangeAllocation(only);
  const content = as === 'etcd' ? rangeAllocationToStorage(allocation) : rangeAllocationToJson(allocation);
  return { content, warnings };
}

function describeRanges({ clusterRanges: { ranges }, agesMs }: Exported): string[] {
  return ranges.map(({ key, range, data, holds }, index) => {
    const items = rangeItems(range);
    const held = holds.reduce((sum, hold) => sum + hold.items.length, 0);
    const ageMs = agesMs[index];
    const of = 'max' in items ? ` of ${items.max}` : '';
    const age = ageMs === undefined ? 'no pass has compared it' : `compared ${formatAge(ageMs)} ago`;
    return `${nameOfKey(key)} ${range}: ${popCount(data)}${of} allocated, ${held} held, ${age}`;
  });
}

interface ImportOptions extends GlobalOptions {
  readonly filename: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const IMPORT_DESCRIPTION = `Import the allocated items of a file into the ranges of a cluster.

The file is one of "kbctl export ranges", or a RangeAllocation object of Kubernetes, as JSON or as in etcd. The difference is printed first. Items that are allocated in the file become allocated here; nothing is released.

Afterwards nothing can be allocated in the cluster until an enforcing pass of both repair loops has compared the ranges with its Services.`;

/** More than any ranges need. */
const MOST_BYTES = 2 * 1024 * 1024;
/** Longer than an import whose every write times out once. */
const IMPORT_MS = 60_000;

export function importCommand(act: Act): Command {
  return new Command('import').description('Import data of a file into the table').addCommand(importRangesOf(act));
}

function importRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .description(IMPORT_DESCRIPTION)
    .argument('<cluster>', 'the name of the cluster')
    .requiredOption('-f, --filename <file>', 'the file, or - for stdin')
    .option('--dry-run', 'print only the difference; exit code 1 if there is one')
    .option('--yes', 'import without confirmation')
    .action(act<ImportOptions>((cli, [name = ''], options) => importFrom(cli, name, options)));
  return withExamples(command, [
    'kbctl import ranges prod-eu-1 -f prod-eu-1.json --dry-run',
    'etcdctl get --print-value-only /registry/ranges/servicenodeports > servicenodeports',
    'kbctl import ranges prod-eu-1 -f servicenodeports',
  ]);
}

async function importFrom(
  cli: Cli,
  cluster: string,
  { filename, dryRun = false, yes }: ImportOptions,
): Promise<ExitCode> {
  const { output } = cli;
  const file = unlessRefused(readExchangeFile(await readInput(filename, output.terminal.in)));
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

/** Reads a file, or the standard input for `-`. @throws CliError when it cannot be read, or is too large */
async function readInput(name: string, stdin: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of name === '-' ? stdin : (createReadStream(name) as AsyncIterable<Uint8Array>)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MOST_BYTES) break;
    }
  } catch (error) {
    throw configurationError(`Cannot read ${name} (${failureCode(error)}): use an existing, readable file.`);
  }
  if (bytes <= MOST_BYTES) return Buffer.concat(chunks);
  const place = name === '-' ? 'The standard input' : name;
  throw configurationError(`${place} is larger than ${MOST_BYTES / (1024 * 1024)} MB: it is not a file of ranges.`);
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

function importLines({ plans }: ImportPreview, paint: Output['paint']): string[] {
  return plans.flatMap((plan) => [paint('bold', `${nameOfKey(plan.key)} ${plan.range}`), ...rangeLines(plan, paint)]);
}

function plainImport({ plans, warnings, changes }: ImportPreview) {
  return {
    changes,
    warnings,
    ranges: plans.map((plan) => ({
      key: plan.key,
      range: plan.range,
      toSet: itemsIn(plan.range, plan.toSet),
      alreadySet: itemsIn(plan.range, plan.alreadySet),
      onlyHere: itemsIn(plan.range, plan.onlyHere),
      strikesCleared: itemsIn(plan.range, plan.struck),
      holds: plan.holds,
      holdsLeftOut: plan.holdsLeftOut,
    })),
  };
}

function rangeLines(plan: ImportPlan, paint: Output['paint']): string[] {
  const line = (title: string, bits: Uint8Array, style?: Style): string => {
    const text =
      `  ${title.padEnd(12)} ${String(popCount(bits)).padStart(6)}  ${namesOf(itemsIn(plan.range, bits))}`.trimEnd();
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
