import { Command } from 'commander';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, worst } from '../errors.ts';
import { readClaims } from '../item/claims.ts';
import { ITEM_NOUNS, type ItemKind, placeOf } from '../item/item-place.ts';
import { itemLines, needsAttention, plainItem } from '../item/item-report.ts';
import { itemStatus, readItemFacts } from '../item/item-status.ts';
import { type ConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  /** `false`: Services are not read. */
  readonly services: boolean;
}

/** `kbctl show ip|port CLUSTER VALUE`. */
export function showCommand(act: Act): Command {
  return new Command('show')
    .description('Show details of a cluster IP or node port')
    .addCommand(showItem(act, 'ip'))
    .addCommand(showItem(act, 'port'));
}

function showItem(act: Act, kind: ItemKind): Command {
  const { one, example } = ITEM_NOUNS[kind];
  const command = new Command(kind)
    .description(`Show whether a ${one} is free or allocated, and its Services, hold or leak`)
    .argument('<cluster>', 'its name')
    .argument('<value>', `the ${one}`)
    .option('--no-services', 'read only the table, not the Services of the cluster');
  return withExamples(
    withConnectionOptions(command).action(act<Options>((cli, operands, options) => show(cli, kind, operands, options))),
    [`kbctl show ${kind} prod-eu-1 ${example}`, `kbctl show ${kind} prod-eu-1 ${example} --no-services -o json`],
  );
}

async function show(
  cli: Cli,
  kind: ItemKind,
  [name = '', value = '']: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { table } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  const place = placeOf(cluster.spec, kind, value);
  // The table is read after the Services, so that it is at least as new.
  const read = options.services ? await readClaims(cli, cluster.spec, [place], options, true) : [];
  const [claims] = 'exitCode' in read ? [] : read;
  const nowMs = await cli.nowMs();
  const facts = await readItemFacts(table, cluster, place, nowMs);
  const status = itemStatus({ ...facts, ...(claims && { claims }) }, nowMs);
  cli.output.object({ kind: kind === 'ip' ? 'ClusterIP' : 'NodePort', ...plainItem(status, name) }, () =>
    itemLines(status, cluster.spec, nowMs, cli.output),
  );
  return worst([needsAttention(status) ? EXIT.findings : EXIT.fine, 'exitCode' in read ? read.exitCode : EXIT.fine]);
}
