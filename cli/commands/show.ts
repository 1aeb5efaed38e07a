import { Command } from 'commander';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, worst } from '../errors.ts';
import { ITEM_NOUNS, type ItemKind, placeOf } from '../item/item-place.ts';
import { itemLines, needsAttention, plainItem } from '../item/item-report.ts';
import { readItemFacts, workOutItem } from '../item/item-status.ts';
import { servicesWith } from '../item/services-with.ts';
import { type ConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  /** `false`: the API server is not asked. */
  readonly services: boolean;
}

/** `kbctl show ip|port CLUSTER VALUE`. */
export function showCommand(act: Act): Command {
  return new Command('show')
    .description('Show everything about one cluster IP or node port')
    .addCommand(showItem(act, 'ip'))
    .addCommand(showItem(act, 'port'));
}

function showItem(act: Act, kind: ItemKind): Command {
  const { one, example } = ITEM_NOUNS[kind];
  const command = new Command(kind)
    .description(`Show whether a ${one} is free, and who has it: Service, hold or leak`)
    .argument('<cluster>', 'its name')
    .argument('<value>', `the ${one}`)
    .option('--no-services', 'only what the table knows: the API server is not asked which Services there are');
  return withExamples(
    withConnectionOptions(command).action(
      act<Options>((cli, [name = '', value = ''], options) => show(cli, { kind, name, value }, options)),
    ),
    [`kbctl show ${kind} prod-eu-1 ${example}`, `kbctl show ${kind} prod-eu-1 ${example} --no-services -o json`],
  );
}

interface Asked {
  readonly kind: ItemKind;
  readonly name: string;
  readonly value: string;
}

async function show(cli: Cli, { kind, name, value }: Asked, options: Options): Promise<ExitCode> {
  const { table } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  const place = placeOf(cluster.spec, kind, value);
  // What is read of the table after the Services is at least as new as they are.
  const asked = options.services ? await servicesWith(cli, cluster.spec, [place], options) : undefined;
  const [services] = asked !== undefined && !('exitCode' in asked) ? asked : [];
  const nowMs = await cli.nowMs();
  const facts = await readItemFacts(table, cluster, place, nowMs);
  const status = workOutItem({ ...facts, ...(services && { services }) }, nowMs);
  cli.output.object({ kind: kind === 'ip' ? 'ClusterIP' : 'NodePort', ...plainItem(status, name) }, () =>
    itemLines(status, cluster.spec, nowMs, cli.output),
  );
  return worst([
    needsAttention(status) ? EXIT.findings : EXIT.fine,
    asked !== undefined && 'exitCode' in asked ? asked.exitCode : EXIT.fine,
  ]);
}
