import { Argument, Command } from 'commander';
import type { EndedPass } from '../../lib/dispatch/record-pass.ts';
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
  const [{ exitCodeOfPass, passLines, plainPass, runOnce }, { LOOP_DEFINITIONS }, { passEnvironment }] =
    await Promise.all([
      import('../passes/run-once.ts'),
      import('../../local/clock-driven-runner.ts'),
      import('../pass-environment.ts'),
    ]);
  const opened = dryRun ? await cli.openTable() : await cli.openForWriting();
  const cluster = await registeredCluster(opened.table, name);
  await heedPause(cli, loopId, cluster, options);
  heedMode(cli, cluster, options);
  const stack = cluster.owner?.stack;
  const { environment, close } = await passEnvironment(cli, opened, { ...options, ...defined({ stack }) });
  let pass: EndedPass;
  try {
    pass = await runOnce(environment, LOOP_DEFINITIONS[loopId], cluster, { dryRun, evenIfPaused });
  } finally {
    await close();
  }
  if (pass.report === undefined) return notRun(cli, pass.errors[0]);

  const ran = { cluster: name, loop: loopId, dryRun, pass };
  cli.output.object(plainPass(ran), () => passLines(ran, cli.output.paint));
  return cli.ended.aborted ? EXIT.interrupted : exitCodeOfPass(ran);
}

async function heedPause(cli: Cli, loop: Loop, cluster: RegisteredCluster, options: Options): Promise<void> {
  const { name } = cluster.spec;
  const pause = await readPauseOf(cli, cluster);
  if (pause === undefined) return;
  const paused = `${name} is ${describePause(pause)}`;
  if (options.dryRun || options.evenIfPaused) {
    cli.output.say(paused);
    return;
  }
  throw configurationError(
    `${paused}. Nothing was done. To run a pass anyway: kbctl run-once ${loop} ${name} --even-if-paused`,
  );
}

function heedMode(cli: Cli, { spec, owner }: RegisteredCluster, { dryRun }: Options): void {
  if (dryRun) return;
  if (spec.mode === 'observe') {
    cli.output.say(`${spec.name} is in mode observe: the pass writes nothing, and reports what it would write.`);
  }
  if (owner !== undefined) cli.output.say(`The pass runs for stack ${owner.stack}, which owns ${spec.name}.`);
}

/** Reports that Ctrl-C ended the pass before it decided anything. Throws the error of the pass if Ctrl-C was not the cause. */
function notRun(cli: Cli, error: unknown): ExitCode {
  if (cli.ended.aborted) {
    cli.output.say('Interrupted before anything was decided: nothing was changed.');
    return EXIT.interrupted;
  }
  throw error;
}
