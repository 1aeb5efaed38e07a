import { Argument, Command } from 'commander';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { defined } from '../../lib/util/values.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode } from '../errors.ts';
import { type ConnectionOptions, withConnectionOptions } from '../options.ts';
import { describePause, readPauseOf, registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly dryRun?: boolean;
  readonly evenIfPaused?: boolean;
}

const DESCRIPTION = `Run one pass of a loop now, and print what it did and why.

The pass runs on this machine, with your credentials and for the stack that owns the cluster. kubernetes-service probes the API servers from here: use --dry-run where this machine cannot reach them.`;

export function runOnceCommand(act: Act): Command {
  const command = new Command('run-once')
    .description(DESCRIPTION)
    .addArgument(new Argument('<loop>', 'the loop').choices(LOOPS))
    .argument('<cluster>', 'the name of the cluster')
    .option('--dry-run', 'print what a pass would change, and write nothing; exit code 1 if it would change anything')
    .option('--even-if-paused', 'run while the cluster is paused');
  const action = act<Options>((cli, [loop, name = ''], options) => runPassOnce(cli, loop as Loop, name, options));
  return withConnectionOptions(command).action(action);
}

async function runPassOnce(cli: Cli, loopId: Loop, name: string, options: Options): Promise<ExitCode> {
  const { dryRun = false, evenIfPaused = false } = options;
  const { LOOP_DEFINITIONS } = await import('../../local/clock-driven-runner.ts');
  const { exitCodeOfPass, passLines, plainPass, runOnce } = await import('../passes/run-once.ts');
  const { passEnvironment } = await import('../pass-environment.ts');
  const opened = dryRun ? await cli.openTable() : await cli.openForWriting();
  const cluster = await registeredCluster(opened.table, name);
  await heedPause(cli, loopId, cluster, options);
  if (!dryRun) describeMode(cli, cluster);
  const stack = cluster.owner?.stack;
  await using passes = await passEnvironment(cli, opened, { ...options, ...defined({ stack }) });
  const pass = await runOnce(passes.environment, LOOP_DEFINITIONS[loopId], cluster, { dryRun, evenIfPaused });
  if (pass.report !== undefined) {
    const ran = { cluster: name, loop: loopId, dryRun, pass };
    cli.output.object(plainPass(ran), () => passLines(ran, cli.output.paint));
    return cli.ended.aborted ? EXIT.interrupted : exitCodeOfPass(ran);
  }
  if (!cli.ended.aborted) throw pass.errors[0];
  cli.output.say('Interrupted before anything was decided: nothing was changed.');
  return EXIT.interrupted;
}

async function heedPause(cli: Cli, loop: Loop, cluster: RegisteredCluster, options: Options): Promise<void> {
  const { name } = cluster.spec;
  const pause = await readPauseOf(cli, cluster);
  if (pause === undefined) return;
  const paused = `${name} is ${describePause(pause)}`;
  if (!options.dryRun && !options.evenIfPaused) {
    const next = `To run a pass anyway: kbctl run-once ${loop} ${name} --even-if-paused`;
    throw configurationError(`${paused}. Nothing was done. ${next}`);
  }
  cli.output.say(paused);
}

function describeMode({ output }: Cli, { spec, owner }: RegisteredCluster): void {
  if (spec.mode === 'observe') {
    output.say(`${spec.name} is in mode observe: the pass writes nothing, and reports what it would write.`);
  }
  if (owner !== undefined) output.say(`The pass runs for stack ${owner.stack}, which owns ${spec.name}.`);
}
