import { Command } from 'commander';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { pauseInForce } from '../../lib/dispatch/due.ts';
import { type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode } from '../errors.ts';
import { type ConnectionOptions, connectionOf, withConnectionOptions, withExamples } from '../options.ts';
import { pausedWords, registeredCluster } from '../registered.ts';
import type { Repaired } from '../repair/repair-now.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly dryRun?: boolean;
  readonly rebuild?: boolean;
  readonly evenIfPaused?: boolean;
}

/** Which of the two loops. */
interface Kind {
  readonly word: 'cluster-ip' | 'node-port';
  readonly items: string;
  readonly keys: readonly RangeKey[];
}

const KINDS: readonly Kind[] = [
  { word: 'cluster-ip', items: 'cluster IPs', keys: [RANGE_KEYS.primary, RANGE_KEYS.secondary] },
  { word: 'node-port', items: 'node ports', keys: [RANGE_KEYS.nodePorts] },
];

const REBUILD = `
--rebuild replaces a snapshot that does not parse by what the Services prove. What it held without a Service, leaks and
holds, is lost with it. Until it is saved nothing can be allocated from the range, as before.`;

/** `kbctl repair cluster-ip|node-port CLUSTER`. */
export function repairCommand(act: Act): Command {
  const command = new Command('repair').description('Run one pass of a repair loop now, and show what it did and why');
  for (const kind of KINDS) command.addCommand(kindCommand(act, kind));
  return command;
}

function kindCommand(act: Act, kind: Kind): Command {
  const command = new Command(kind.word)
    .description(`Run one pass of ${kind.word}-repair now: compares the ${kind.items} in the table with the Services`)
    .argument('<cluster>', 'its name')
    .option('--dry-run', 'show what a pass would change, and write nothing; exit code 1 when there is something')
    .option('--rebuild', 'replace a corrupt snapshot by what the Services prove')
    .option('--even-if-paused', 'also while the passes of the cluster are paused')
    .addHelpText('after', REBUILD);
  const action = act<Options>((cli, [name = ''], options) => repair(cli, kind, name, options));
  return withExamples(withConnectionOptions(command).action(action), [
    `kbctl repair ${kind.word} prod-eu-1 --dry-run`,
    `kbctl repair ${kind.word} prod-eu-1`,
    `kbctl repair ${kind.word} prod-eu-1 --rebuild --dry-run`,
  ]);
}

async function repair(cli: Cli, kind: Kind, name: string, options: Options): Promise<ExitCode> {
  const { dryRun = false, rebuild = false } = options;
  const opened = dryRun ? await cli.openTable() : await cli.openForWriting();
  const cluster = await registeredCluster(opened.table, name);
  await heedPause(cli, kind, cluster, options);
  heedMode(cli, cluster, options);
  const [{ passEnvironment }, { countingServices }, { repairNow }, report, { loopFor }] = await Promise.all([
    import('../pass-environment.ts'),
    import('../repair/counting-services.ts'),
    import('../repair/repair-now.ts'),
    import('../repair/repair-report.ts'),
    import('../repair/loops.ts'),
  ]);
  const loop = loopFor(kind.word, rebuild);
  const stack = cluster.owner?.stack;
  const { environment, close } = await passEnvironment(cli, opened, {
    ...connectionOf(options),
    ...(stack !== undefined && { stack }),
  });
  const progress = cli.progress('listing Services');
  const counting = countingServices(environment, (services) => progress.tell(`${services} Services so far`));
  let repaired: Repaired;
  try {
    repaired = await repairNow(counting, { cluster, loop, keys: kind.keys, dryRun });
  } finally {
    progress.end();
    await close();
  }
  const { pass } = repaired;
  if (pass.report === undefined) return notRun(cli, name, pass.errors[0]);

  const facts = { cluster: name, loop: loop.id, dryRun };
  cli.output.object(report.plainRepair(facts, repaired), () => report.repairLines(facts, repaired, cli.output.paint));
  if (rebuild && pass.errors.length === 0) {
    const tense = dryRun ? 'would be' : 'is';
    cli.output.say(`What the corrupt snapshot held without a Service ${tense} lost: leaks, their strikes, and holds.`);
  }
  return cli.ended.aborted ? EXIT.interrupted : report.exitCodeOfRepair(facts, pass);
}

/** A person who does not know of a pause is told; one who does may say so. */
async function heedPause(cli: Cli, { word }: Kind, cluster: RegisteredCluster, options: Options): Promise<void> {
  const { table } = await cli.openTable();
  const { name } = cluster.spec;
  const pause = pauseInForce([await readPauseOfAll(table), cluster.paused], await cli.nowMs());
  if (pause === undefined) return;
  const paused = `${name} is ${pausedWords(pause)}`;
  if (options.dryRun || options.evenIfPaused) {
    cli.output.say(paused);
    return;
  }
  throw configurationError(
    `${paused}. Nothing was done. To run a pass all the same: kbctl repair ${word} ${name} --even-if-paused`,
  );
}

function heedMode(cli: Cli, { spec, owner }: RegisteredCluster, { dryRun, rebuild }: Options): void {
  if (dryRun) return;
  if (spec.mode === 'observe' && rebuild) {
    throw configurationError(
      `${spec.name} is in observe, in which nothing is written: show with --dry-run what would be, or let its passes write with "kbctl cluster set-mode enforce ${spec.name}".`,
    );
  }
  if (spec.mode === 'observe') {
    cli.output.say(`${spec.name} is in observe: the pass changes nothing, and says what it would.`);
  }
  if (owner !== undefined) cli.output.say(`For the stack ${owner.stack}, which owns ${spec.name}.`);
}

/** It ended before it had decided anything, and is not recorded. */
function notRun(cli: Cli, name: string, error: unknown): ExitCode {
  if (cli.ended.aborted) {
    cli.output.say('Interrupted before anything was decided: nothing was changed.');
    return EXIT.interrupted;
  }
  if (error instanceof Error && 'code' in error && error.code === 'NotCorrupt') {
    throw configurationError(`${error.message}. "kbctl get ranges ${name}" shows them.`);
  }
  throw error;
}
