import { randomUUID } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Answer } from '../../lib/allocate/answer.ts';
import { type AllocateRequest, MOST_ITEMS, type RangeName } from '../../lib/allocate/request.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { HOLD_OWNER } from '../../lib/cluster/hold.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRequest } from '../../lib/table/requests.ts';
import { checkedOwner, type HoldFor, ownerFrom, parseHoldFor, refusalOf, runRequest } from '../allocate/request.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { ITEM_NOUNS, type ItemKind, placeOf } from '../item/item-place.ts';
import { withExamples } from '../options.ts';
import { nameOfKey, timeLeft } from '../ranges/range-words.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions {
  readonly count?: number;
  readonly hold?: HoldFor;
  readonly owner?: string;
  readonly takenUpBy: 'any' | 'owner';
  readonly secondary?: boolean;
  readonly requestId?: string;
  readonly dryRun?: boolean;
}

interface Asked {
  readonly kind: ItemKind;
  readonly name: string;
  readonly values: readonly string[];
}

/** `kbctl allocate ip|port CLUSTER [VALUE...]`. */
export function allocateCommand(act: Act): Command {
  return new Command('allocate')
    .description('Take cluster IPs or node ports from the table of a cluster, and hold them')
    .addCommand(allocateItems(act, 'ip'))
    .addCommand(allocateItems(act, 'port'));
}

function allocateItems(act: Act, kind: ItemKind): Command {
  const { one, several, example } = ITEM_NOUNS[kind];
  const summary = `Take ${several} and hold them: all that are asked for, or none`;
  const command = new Command(kind)
    .summary(summary)
    .description(
      `${summary}.\n\nWhat is held is yours until its time: a Service takes it up, or "kbctl release ${kind}" gives it back. On stdout is one ${one} a line.`,
    )
    .argument('<cluster>', 'its name; its spec says "allocator: table"')
    .argument('[value...]', `${several} to take; default: whichever is free`)
    .option('--count <n>', `how many, of those that are free; default: 1, at most ${MOST_ITEMS}`, parseCount)
    .option('--hold <duration>', 'how long, such as 1h, or forever; default: 15m', parseHoldFor)
    .option('--owner <name>', 'whose they are; default: your name on this machine')
    .addOption(
      new Option('--taken-up-by <services>', 'which Services may have them: any, or those with the label of the owner')
        .choices(['any', 'owner'])
        .default('any'),
    )
    .option(
      '--request-id <id>',
      'the same command with the same id takes nothing twice, within a day; default: a new one',
    )
    .option('--dry-run', 'take nothing, and say what would be');
  if (kind === 'ip') command.option('--secondary', 'of the second range of the cluster');
  return withExamples(
    command.action(
      act<Options>((cli, [name = '', ...values], options) => allocate(cli, { kind, name, values }, options)),
    ),
    [
      `kbctl allocate ${kind} prod-eu-1`,
      `kbctl allocate ${kind} prod-eu-1 ${example} --hold forever --owner migration`,
      `kbctl allocate ${kind} prod-eu-1 --count 3 --hold 1h`,
    ],
  );
}

async function allocate(cli: Cli, asked: Asked, options: Options): Promise<ExitCode> {
  const { output } = cli;
  refuseWhatDoesNotFit(asked, options);
  const owner = options.owner === undefined ? ownerFrom() : checkedOwner(options.owner);
  const { table, clock } = options.dryRun ? await cli.openTable() : await cli.openForWriting();
  const { spec } = await registeredCluster(table, asked.name);
  const { requestId = `kbctl-${randomUUID()}` } = options;
  const nowMs = clock.nowMs();
  const untilMs = await holdEndMs(table, asked.name, options, nowMs);
  const request: AllocateRequest = {
    requestId,
    cluster: spec.name,
    operation: 'allocate',
    items: itemsOf(spec, asked, options),
    hold: {
      owner,
      takenUpBy: options.takenUpBy,
      ...(untilMs !== undefined && { until: untilMs === 'forever' ? untilMs : new Date(untilMs).toISOString() }),
    },
    ...(options.dryRun && { dryRun: true }),
  };
  const again = `the same command with --request-id ${requestId} goes on where this ended.`;
  const answer = await runRequest(cli, request, again);
  if (output.isForPrograms) output.document({ kind: 'Allocation', ...answer });
  const refusal = refusalOf(answer, 'Nothing was allocated.');
  if (refusal !== undefined) throw refusal;
  if (!output.isForPrograms) output.lines(answer.items.map(({ value }) => String(value)));
  output.say(heldText(answer, nowMs));
  return EXIT.fine;
}

function refuseWhatDoesNotFit({ kind, values }: Asked, { count, secondary, requestId }: Options): void {
  if (values.length > 0 && count !== undefined) {
    throw usageError(`--count is for whichever ${ITEM_NOUNS[kind].several} are free: leave it out, or the values.`);
  }
  if (values.length > 0 && secondary) {
    throw usageError('--secondary is for whichever cluster IPs are free: a value says by itself which range it is of.');
  }
  if (values.length > MOST_ITEMS) {
    throw usageError(
      `${values.length} values are asked for, and ${MOST_ITEMS} is the most: take them in several commands.`,
    );
  }
  if (requestId !== undefined && !HOLD_OWNER.test(requestId)) {
    throw usageError('--request-id is 1 to 63 of A-Z, a-z, 0-9, "-", "_" and ".", a letter or digit first and last.');
  }
}

function itemsOf(
  spec: ClusterSpec,
  { kind, values }: Asked,
  { count = 1, secondary }: Options,
): AllocateRequest['items'] {
  if (values.length === 0) {
    const range = kind === 'port' ? 'servicenodeports' : secondary ? 'secondaryserviceips' : 'serviceips';
    return [{ range, next: true, count }];
  }
  return values.map((text) => {
    const { key, item } = placeOf(spec, kind, text);
    return { range: nameOfKey(key) as RangeName, value: kind === 'port' ? Number(item) : item };
  });
}

/** A command that is repeated asks for the same end, whatever time it is by now. */
async function holdEndMs(
  table: KeyValueTable,
  cluster: string,
  { hold, requestId }: Options,
  nowMs: number,
): Promise<'forever' | number | undefined> {
  if (typeof hold !== 'number') return hold;
  const before = requestId === undefined ? undefined : await readRequest(table, cluster, requestId);
  return before?.record.hold?.untilMs ?? nowMs + hold;
}

function heldText({ items, dryRun, replayed }: Answer, nowMs: number): string {
  const hold = items.find((item) => item.hold !== undefined)?.hold;
  const end = hold?.until;
  const until =
    end === undefined || end === 'forever'
      ? 'for good'
      : `until ${end} (${timeLeft(Date.parse(end) - nowMs)} from now)`;
  const held = `for ${hold?.owner ?? 'nobody'} ${until}`;
  if (dryRun) return `Dry run: nothing was taken. It would be held ${held}.`;
  return `${replayed ? 'Done before: held' : 'Held'} ${held}.`;
}

function parseCount(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MOST_ITEMS) return count;
  throw new InvalidArgumentError(`It is a number from 1 to ${MOST_ITEMS}.`);
}
