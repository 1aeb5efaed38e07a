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

const SUMMARY = 'Write the ranges of a cluster into a file: what is taken in them, and what is held';
const DESCRIPTION = `${SUMMARY}.

--as json is our own form: every range, with its holds. --as range-allocation is the object RangeAllocation of Kubernetes as JSON, and --as etcd the bytes that an API server keeps in etcd under /registry/ranges/: one range each, without holds.

It is refused when nobody knows whether the table agrees with the cluster, because no pass has saved lately: such a copy may hand out an address twice.`;

/** `kbctl export ranges CLUSTER`. */
export function exportCommand(act: Act): Command {
  return new Command('export').description('Write what is in the table into a file').addCommand(exportRangesOf(act));
}

function exportRangesOf(act: Act): Command {
  const command = new Command('ranges')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .addOption(
      new Option('--range <name>', 'one of them; default: all, which --as json alone can hold').choices(RANGE_NAMES),
    )
    .addOption(new Option('--as <form>', 'the form of the file').choices(FORMS).default('json'))
    .option('-f, --filename <file>', 'where it goes, over what is there; default: stdout')
    .option('--force', 'also when it would be refused, which is said')
    .action(act<Options>((cli, [name = ''], options) => exportTo(cli, name, options)));
  return withExamples(command, [
    'kbctl export ranges prod-eu-1 -f prod-eu-1.json',
    'kbctl export ranges prod-eu-1 --range servicenodeports --as etcd -f servicenodeports',
    'etcdctl put /registry/ranges/servicenodeports < servicenodeports',
  ]);
}

async function exportTo(cli: Cli, cluster: string, options: Options): Promise<ExitCode> {
  const { output } = cli;
  refuseWhatDoesNotFit(cli, options);
  const { table } = await cli.openTable();
  await registeredCluster(table, cluster);
  const result = await exportRanges(table, cluster, {
    nowMs: await cli.nowMs(),
    ...(options.range !== undefined && { keys: [keyOf(options.range)] }),
    force: options.force === true,
  });
  const exported = unlessRefused(withForceNamed(result));
  const { content, warnings } = written(exported, options);
  if (options.filename === undefined) output.data(content);
  else await writeWhole(options.filename, content);
  for (const warning of [...exported.warnings, ...warnings]) output.say(`warning: ${warning}`);
  for (const line of toldOf(exported)) output.say(line);
  return EXIT.fine;
}

function refuseWhatDoesNotFit({ output }: Cli, { as, range, filename }: Options): void {
  if (output.format === 'yaml') {
    throw usageError('What is exported is read by programs as it is: --as says its form, and none is YAML.');
  }
  if (as !== 'json' && range === undefined) {
    throw usageError(`--as ${as} holds one range: say which with --range ${RANGE_NAMES.join(', ')}.`);
  }
  if (as === 'etcd' && filename === undefined && output.terminal.out.isTTY) {
    throw usageError('--as etcd is no text for a terminal: write it into a file with -f FILE, or into a pipe.');
  }
}

/** What is exported although it is old can hand out an address twice, and is sometimes all there is. */
function withForceNamed(result: Exported | ExchangeError): Exported | ExchangeError {
  if (!(result instanceof ExchangeError) || (result.code !== 'NotCurrent' && result.code !== 'NoRecord')) return result;
  return new ExchangeError(result.code, `${result.message} With --force it is exported all the same.`);
}

function written(
  { clusterRanges }: Exported,
  { as, range }: Options,
): { readonly content: string | Uint8Array; readonly warnings: readonly string[] } {
  if (as === 'json') return { content: clusterRangesToJson(clusterRanges), warnings: [] };
  const [only] = clusterRanges.ranges;
  if (only === undefined) {
    throw configurationError(`Nothing is stored as ${range}: there is nothing to export, until a pass has saved it.`);
  }
  const { allocation, warnings } = asRangeAllocation(only);
  const content = as === 'etcd' ? rangeAllocationToStorage(allocation) : rangeAllocationToJson(allocation);
  return { content, warnings };
}

/** What somebody wants to know of the copy once it is older. */
function toldOf({ clusterRanges: { ranges }, agesMs }: Exported): string[] {
  return ranges.map(({ key, range, data, holds }, index) => {
    const items = rangeItems(range);
    const held = holds.reduce((sum, hold) => sum + hold.items.length, 0);
    const ageMs = agesMs[index];
    const of = 'max' in items ? ` of ${items.max}` : '';
    const age = ageMs === undefined ? 'no pass has compared it' : `compared ${formatAge(ageMs)} ago`;
    return `${nameOfKey(key)} ${range}: ${popCount(data)}${of} taken, ${held} held, ${age}`;
  });
}
