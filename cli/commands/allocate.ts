import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import type { Answer } from '../../lib/allocate/answer.ts';
import { type AllocateRequest, MOST_ITEMS, type RangeName } from '../../lib/allocate/request.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { isKept, readRequest } from '../../lib/table/requests.ts';
import { timeLeft } from '../../lib/util/age.ts';
import { defined, isoTime } from '../../lib/util/values.ts';
import { type HoldFor, ownerFrom, parseHoldFor, runRequest, throwIfRefused } from '../allocate/request.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { readClaims } from '../item/claims.ts';
import { ITEM_NOUNS, type ItemKind, type ItemPlace, itemPlaceOf, nameOfKey } from '../item/item-place.ts';
import { readServedRanges } from '../item/item-status.ts';
import { type ConnectionOptions, withConnectionOptions } from '../options.ts';
import type { Output } from '../output.ts';
import { registeredCluster } from '../registered.ts';

interface AllocateOptions extends GlobalOptions, ConnectionOptions {
  readonly count?: number;
  readonly hold?: HoldFor;
  readonly owner?: string;
  readonly takenUpBy: 'any' | 'owner';
  readonly secondary?: boolean;
  readonly requestId?: string;
  readonly dryRun?: boolean;
}

type Operands = readonly string[];

interface ReleaseOptions extends GlobalOptions, ConnectionOptions {
  readonly owner?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const CLAIMED_BY = 'which Services can claim the hold: any, or those with the label of the owner';

export function allocateCommand(act: Act): Command {
  return new Command('allocate')
    .description('Allocate cluster IPs or node ports, and hold them')
    .addCommand(allocateItems(act, 'ip'))
    .addCommand(allocateItems(act, 'port'));
}

function allocateItems(act: Act, kind: ItemKind): Command {
  const one = ITEM_NOUNS[kind];
  const several = `${one}s`;
  const command = new Command(kind)
    .description(
      `Allocate ${several} and hold them: all that are requested, or none.\n\nA hold ends at its time, when a Service claims it in the table, or with "kbctl release ${kind}". Prints one ${one} per line.`,
    )
    .argument('<cluster>', 'the name of the cluster')
    .argument('[value...]', `${several} to allocate; default: any free one`)
    .option('--count <n>', `the number of free ${several} to allocate; default: 1, at most ${MOST_ITEMS}`, Number)
    .option('--hold <duration>', 'the duration, such as 1h, or forever; default: 15m', parseHoldFor)
    .option('--owner <name>', 'the owner of the hold; default: your user name')
    .addOption(new Option('--taken-up-by <services>', CLAIMED_BY).choices(['any', 'owner']).default('any'))
    .option('--request-id <id>', 'repeating this id within a day allocates nothing twice; default: random')
    .option('--dry-run', 'allocate nothing, and print what would be allocated');
  if (kind === 'ip') command.option('--secondary', 'allocate from the second range of the cluster');
  const action = act<AllocateOptions>((cli, operands, options) => allocate(cli, kind, operands, options));
  return withConnectionOptions(command).action(action);
}

async function allocate(cli: Cli, kind: ItemKind, operands: Operands, options: AllocateOptions): Promise<ExitCode> {
  const { output } = cli;
  const [name = '', ...values] = operands;
  if (values.length > 0 && (options.count !== undefined || options.secondary)) {
    throw usageError(`Use either --count and --secondary, or the ${ITEM_NOUNS[kind]}s.`);
  }
  const { table, clock } = options.dryRun ? await cli.openTable() : await cli.openForWriting();
  const { spec } = await registeredCluster(table, name);
  const served = await readServedRanges(table, spec);
  const { requestId = `kbctl-${randomUUID()}` } = options;
  const nowMs = clock.nowMs();
  const until = await holdEnd(table, name, options, nowMs);
  const request: AllocateRequest = {
    requestId,
    cluster: spec.name,
    operation: 'allocate',
    items:
      values.length > 0
        ? values.map((text) => requestItem(itemPlaceOf(spec, kind, text, served)))
        : [anyOf(kind, options)],
    hold: { owner: options.owner ?? ownerFrom(), takenUpBy: options.takenUpBy, ...defined({ until }) },
    ...(options.dryRun && { dryRun: true }),
  };
  const next = `run the command again with --request-id ${requestId} to complete it.`;
  const answer = await runRequest(cli, request, next, options);
  report(output, 'Allocation', answer, 'Nothing was allocated.', ({ value }) => String(value));
  output.say(describeHold(answer, nowMs));
  return EXIT.fine;
}

type RequestItem = AllocateRequest['items'][number];

function anyOf(kind: ItemKind, { count = 1, secondary }: AllocateOptions): RequestItem {
  const range = kind === 'port' ? 'servicenodeports' : secondary ? 'secondaryserviceips' : 'serviceips';
  return { range, next: true, count };
}

function requestItem({ kind, key, item }: ItemPlace): RequestItem {
  return { range: nameOfKey(key) as RangeName, value: kind === 'port' ? Number(item) : item };
}

/** Returns the end of the hold. A repeated command with the same request id keeps the end that the first command set. */
async function holdEnd(
  table: KeyValueTable,
  cluster: string,
  { hold, requestId }: AllocateOptions,
  nowMs: number,
): Promise<string | undefined> {
  if (typeof hold !== 'number') return hold;
  const before = requestId === undefined ? undefined : await readRequest(table, cluster, requestId);
  const kept = before !== undefined && isKept(before, nowMs) ? before.record.hold?.untilMs : undefined;
  return isoTime(kept ?? nowMs + hold);
}

function describeHold({ items, dryRun, replayed }: Answer, nowMs: number): string {
  const { owner = '', until = 'forever' } = items[0]?.hold ?? {};
  const end = until === 'forever' ? 'without end' : `until ${until} (${timeLeft(Date.parse(until) - nowMs)} from now)`;
  const held = `for ${owner} ${end}`;
  if (dryRun) return `Dry run: nothing was allocated. It would be held ${held}.`;
  return `${replayed ? 'Already done: held' : 'Held'} ${held}.`;
}

export function releaseCommand(act: Act): Command {
  return new Command('release')
    .description('Release cluster IPs or node ports')
    .addCommand(releaseItems(act, 'ip'))
    .addCommand(releaseItems(act, 'port'));
}

function releaseItems(act: Act, kind: ItemKind): Command {
  const several = `${ITEM_NOUNS[kind]}s`;
  const command = new Command(kind)
    .description(
      `Release ${several}, and end their holds.\n\nThe Services of the cluster are read first. If a Service has one of them, it could be allocated twice: it is released only with --yes, and not at all if the API servers allocate.`,
    )
    .argument('<cluster>', 'the name of the cluster')
    .argument('<value...>', `${several} to release`)
    .option('--owner <name>', 'release only what this owner holds, and refuse the rest')
    .option('--dry-run', 'release nothing, and print what would be released')
    .option('--yes', 'release from the table without reading Services');
  const action = act<ReleaseOptions>((cli, operands, options) => release(cli, kind, operands, options));
  return withConnectionOptions(command).action(action);
}

async function release(cli: Cli, kind: ItemKind, operands: Operands, options: ReleaseOptions): Promise<ExitCode> {
  const { output } = cli;
  const [name = '', ...values] = operands;
  const { owner, yes, dryRun } = options;
  const { table } = dryRun ? await cli.openTable() : await cli.openForWriting();
  const { spec } = await registeredCluster(table, name);
  const served = await readServedRanges(table, spec);
  const places = values.map((value) => itemPlaceOf(spec, kind, value, served));
  // Only a release from the table needs --yes: where API servers allocate, no release removes a Service's address.
  const releases = spec.allocator === 'table' && spec.mode === 'enforce';
  if (!yes && !dryRun && releases) await refuseUsed(cli, spec, places, options);

  const request: AllocateRequest = {
    requestId: `kbctl-${randomUUID()}`,
    cluster: spec.name,
    operation: 'release',
    items: places.map(requestItem),
    ...defined({ owner }),
    ...(dryRun && { dryRun: true }),
  };
  const answer = await runRequest(cli, request, `check with "kbctl show ${kind} ${name} ${places[0]?.item}".`, options);
  report(output, 'Release', answer, 'Not all were released.', ({ value, outcome }) => {
    return `${value} ${outcome === 'free' ? 'was free' : outcome}${dryRun ? ' (dry run)' : ''}`;
  });
  const unread = spec.allocator === 'table' ? ' Services were not read.' : '';
  if (dryRun) output.say(`Dry run: nothing was released.${unread}`);
  return EXIT.fine;
}

/** @throws CliError if the request was refused. The error's message contains `refused` after the reason. */
function report(
  output: Output,
  kind: string,
  answer: Answer,
  refused: string,
  lineOf: (item: Answer['items'][number]) => string,
): void {
  if (output.isForPrograms) output.document({ kind, ...answer });
  throwIfRefused(answer, refused);
  if (!output.isForPrograms) output.lines(answer.items.map(lineOf));
}

/** @throws CliError if a Service has one of the items, or if the Services could not be read */
async function refuseUsed(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
): Promise<void> {
  const claims = await readClaims(cli, spec, places, options, false);
  const used =
    'exitCode' in claims
      ? ['A Service may have them.']
      : places.flatMap(({ item }, index) =>
          (claims[index]?.services ?? []).map(({ service }) => `Service ${service} has ${item}.`),
        );
  if (used.length === 0) return;
  throw usageError(`${used.join(' ')} They could be allocated twice: use --yes to release them. Nothing was changed.`);
}
