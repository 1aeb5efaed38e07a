import { Command, Option } from 'commander';
import { popCount } from '../../lib/allocator/snapshot-bytes.ts';
import { clusterRangesToJson } from '../../lib/exchange/cluster-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { asRangeAllocation, type Exported, exportRanges } from '../../lib/exchange/export-ranges.ts';
import { rangeAllocationToJson, rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import { formatAge } from '../../lib/status/age.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, usageError } from '../errors.ts';
import { writeWhole } from '../files.ts';
import { withExamples } from '../options.ts';
import { keyOf, nameOfKey, RANGE_NAMES, type RangeName, unlessRefused } from '../ranges/range-words.ts';
import { registeredCluster } from '../registered.ts';

const FORMS = ['json', 'range-allocation', 'etcd'] as const;

interface Options extends GlobalOptions {
  readonly range?: RangeName;
  readonly as: (typeof FORMS)[number];
  readonly filename?: string;
  readonly force?: boolean;
}

const SUMMARY = 'Export the ranges of a cluster to a file: allocated items and holds';
const DESCRIPTION = `${SUMMARY}.

--as json contains every range with its holds. --as range-allocation is the RangeAllocation object of Kubernetes as JSON, and --as etcd the bytes of an API server in etcd under /registry/ranges/: one range each, without holds.

A range that no pass has saved recently is refused: an address could be allocated twice from such a copy.`;

/** `kbctl export ranges CLUSTER`. */
export function exportCommand(act: Act): Command {
  return new Command('export').description('Export data of the table to a file').addCommand(exportRangesOf(act));
}

function exportRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .addOption(new Option('--range <name>', 'only this range; default: all, only with --as json').choices(RANGE_NAMES))
    .addOption(new Option('--as <form>', 'the format of the file').choices(FORMS).default('json'))
    .option('-f, --filename <file>', 'the file, which is overwritten; default: stdout')
    .option('--force', 'export a range that would be refused, with a warning')
    .action(act<Options>((cli, [name = ''], options) => exportTo(cli, name, options)));
  return withExamples(command, [
    'kbctl export ranges prod-eu-1 -f prod-eu-1.json',
    'kbctl export ranges prod-eu-1 --range servicenodeports --as etcd -f servicenodeports',
    'etcdctl put /registry/ranges/servicenodeports < servicenodeports',
  ]);
}

async function exportTo(cli: Cli, cluster: string, options: Options): Promise<ExitCode> {
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

function checkOptions({ output }: Cli, { as, range, filename }: Options): void {
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
  { as, range }: Options,
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

/** Describes each range of the copy. */
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
