import { Command } from 'commander';
import type { Act } from '../act.ts';
import type { Cli, GlobalOptions } from '../cli.ts';
import { type ConnectionOptions, connectionOf, withConnectionOptions } from '../connection-options.ts';
import { usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { notRegistered } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {}

/** For a fleet; one cluster is looked at for 20 s at most. */
const LONGEST_MS = 600_000;

const DESCRIPTION = `Look for what is wrong, and say what to do about it

Looks at the table, and for each cluster at its spec, passes, kubeconfig, names, API server, probes, rights and endpoints:
from here, with your credentials. The doctor function of the stack looks at the same from where the loops run, and at the
queues of ticks. Changes nothing in a cluster. Exit code 1 when something failed.`;

/** `kbctl doctor [CLUSTER]`. */
export function doctorCommand(act: Act): Command {
  const command = new Command('doctor')
    .summary('Look for what is wrong, and say what to do about it')
    .description(DESCRIPTION)
    .argument('[cluster]', 'its name; default: all')
    .action(act<Options>((cli, [name], options) => run(cli, name, options)));
  return withExamples(withConnectionOptions(command), [
    'kbctl doctor --table kube-bootstrap-controller-prod',
    'kbctl doctor prod-eu-1',
    `kbctl doctor -o json | jq '.lines[] | select(.level == "fail")'`,
  ]);
}

async function run(cli: Cli, name: string | undefined, options: Options): Promise<ExitCode> {
  if (options.kubeconfig !== undefined && name === undefined) {
    throw usageError('--kubeconfig is the way to one cluster: name that too.');
  }
  const opened = await cli.openUnmeasured();
  if (name !== undefined) await refuseUnknown(cli, name);
  const [{ doctor }, { passEnvironment }, { doctorLines, plainDoctor }] = await Promise.all([
    import('../../lib/doctor/doctor.ts'),
    import('../pass-environment.ts'),
    import('../doctor-report.ts'),
  ]);
  const { environment, loadKubeconfig, close } = await passEnvironment(cli, opened, {
    ...connectionOf(options),
    // What it would tell is in the lines.
    telemetry: () => ({ log: () => {}, count: () => {}, sample: () => {}, flush: () => {} }),
  });
  const progress = cli.progress('looking');
  try {
    const event = name === undefined ? {} : { cluster: name };
    const answer = await doctor(() => ({ loadKubeconfig }))(event, {
      getRemainingTimeInMillis: () => LONGEST_MS,
      environment,
    });
    progress.end();
    if (cli.ended.aborted) return EXIT.interrupted;
    cli.output.object(plainDoctor(answer), () => doctorLines(answer, cli.output));
    return answer.ok ? EXIT.fine : EXIT.findings;
  } finally {
    progress.end();
    await close();
  }
}

/** Where the table cannot be read, that is what the doctor says. */
async function refuseUnknown(cli: Cli, name: string): Promise<void> {
  const { table } = await cli.openUnmeasured();
  const { CLUSTERS } = await import('../../lib/table/clusters.ts');
  const item = await table.get(CLUSTERS, name).catch(() => 'unreadable');
  if (item === undefined) throw await notRegistered(table, name);
}
