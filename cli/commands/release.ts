import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import type { AnsweredItem } from '../../lib/allocate/answer.ts';
import { type AllocateRequest, MOST_ITEMS, type RangeName } from '../../lib/allocate/request.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { refusalOf, runRequest } from '../allocate/request.ts';
import { confirmed } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { ITEM_NOUNS, type ItemKind, type ItemPlace, placeOf } from '../item/item-place.ts';
import { servicesWith } from '../item/services-with.ts';
import { type ConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import { nameOfKey } from '../ranges/range-words.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `kbctl release ip|port CLUSTER VALUE...`. */
export function releaseCommand(act: Act): Command {
  return new Command('release')
    .description('Give cluster IPs or node ports back to the table of a cluster')
    .addCommand(releaseItems(act, 'ip'))
    .addCommand(releaseItems(act, 'port'));
}

function releaseItems(act: Act, kind: ItemKind): Command {
  const { several, example } = ITEM_NOUNS[kind];
  const summary = `Give ${several} back, with their holds: whoever asks next may get them`;
  const command = new Command(kind)
    .summary(summary)
    .description(
      `${summary}.\n\nThe API server is asked first whether Services have them. What a Service has would be given out twice, and is released after a yes alone.`,
    )
    .argument('<cluster>', 'its name; its spec says "allocator: table"')
    .argument('<value...>', `${several} to release; what is free stays free`)
    .option('--dry-run', 'release nothing, and say what would be')
    .option('--yes', 'whoever has them: neither the API server nor you are asked');
  return withExamples(
    withConnectionOptions(command).action(
      act<Options>((cli, [name = '', ...values], options) => release(cli, { kind, name, values }, options)),
    ),
    [`kbctl release ${kind} prod-eu-1 ${example}`, `kbctl release ${kind} prod-eu-1 ${example} --yes`],
  );
}

interface Asked {
  readonly kind: ItemKind;
  readonly name: string;
  readonly values: readonly string[];
}

async function release(cli: Cli, { kind, name, values }: Asked, options: Options): Promise<ExitCode> {
  const { output } = cli;
  if (values.length > MOST_ITEMS) {
    throw usageError(
      `${values.length} values are to be released, and ${MOST_ITEMS} is the most: use several commands.`,
    );
  }
  const { table } = options.dryRun ? await cli.openTable() : await cli.openForWriting();
  const { spec } = await registeredCluster(table, name);
  const places = values.map((value) => placeOf(spec, kind, value));
  // Elsewhere than in this table there is nothing to release, which the answer says.
  const isHere = spec.allocator === 'table' && spec.mode === 'enforce';
  if (!options.yes && !options.dryRun && isHere && !(await isFreeToGo(cli, spec, places, options)))
    return EXIT.findings;

  const request: AllocateRequest = {
    requestId: `kbctl-${randomUUID()}`,
    cluster: spec.name,
    operation: 'release',
    items: places.map(({ key, item }) => ({
      range: nameOfKey(key) as RangeName,
      value: kind === 'port' ? Number(item) : item,
    })),
    ...(options.dryRun && { dryRun: true }),
  };
  const answer = await runRequest(cli, request, `"kbctl show ${kind} ${name} ${places[0]?.item}" says how it is.`);
  if (output.isForPrograms) output.document({ kind: 'Release', ...answer });
  const refusal = refusalOf(answer, 'Not all was released.');
  if (refusal !== undefined) throw refusal;
  if (!output.isForPrograms)
    output.lines(answer.items.map((item) => `${releasedLine(item)}${options.dryRun ? ' (dry run)' : ''}`));
  if (options.dryRun) output.say('Dry run: nothing was released. Whether Services have it was not asked.');
  return EXIT.fine;
}

/** Without knowing that no Service has them, a person has to say so. */
async function isFreeToGo(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
): Promise<boolean> {
  const services = await servicesWith(cli, spec, places, options);
  if ('exitCode' in services) {
    return confirmed(cli, 'Release what Services may have? Whoever asks next may get it, too.');
  }
  const owned = places.flatMap(({ item }, index) => (services[index] ?? []).map((service) => ({ item, service })));
  if (owned.length === 0) return true;
  for (const { item, service } of owned) cli.output.say(`${item} is that of Service ${service}.`);
  return confirmed(cli, 'Release what Services have? Whoever asks next may get it, too.');
}

function releasedLine({ value, outcome }: AnsweredItem): string {
  return `${value} ${outcome === 'free' ? 'was free' : outcome}`;
}
