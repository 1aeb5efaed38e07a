import { Command, InvalidArgumentError, Option } from 'commander';
import type { Heartbeat } from '../../lib/api-servers/heartbeat.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import {
  type ConnectionOptions,
  connectionOf,
  parseDuration,
  withConnectionOptions,
  withExamples,
} from '../options.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly address: string;
  readonly every: number;
  readonly once?: boolean;
  /** `false`: it is not asked. Absent: where the spec says. */
  readonly readyz?: string | false;
}

const DESCRIPTION = `Keep the lease of this host's API server, in place of being probed

Runs on the API server's own host. Asks the API server whether it is ready and refreshes its lease in the table, by this
host's clock as the table's corrects it. At its end (Ctrl-C, SIGTERM) the address is taken out of the endpoints, as an API
server does it itself; the next start brings it back. Without one, it is probed again an hour later. If this
command is killed, the API server is probed as soon as its lease has run out.`;

/** `kbctl heartbeat CLUSTER --address auto|IP`. */
export function heartbeatCommand(act: Act): Command {
  const command = new Command('heartbeat')
    .summary("Keep the lease of this host's API server, in place of being probed")
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .requiredOption(
      '--address <ip>',
      "this host's address as the spec lists it; auto: as an API server would choose it",
    )
    .addOption(
      new Option('--every <duration>', 'how often; at most two thirds of endpoints.leaseSeconds')
        .argParser(parseDuration)
        .default(10_000, '10s'),
    )
    .option('--once', 'refresh once and end, without taking the address out')
    .option('--readyz <url>', 'where the API server is asked; default: where the spec says that it is probed', parseUrl)
    .option('--no-readyz', 'do not ask it: whoever runs this knows that it is ready');
  const action = act<Options>((cli, [name = ''], options) => run(cli, name, options));
  return withExamples(withConnectionOptions(command).action(action), [
    'kbctl heartbeat prod-eu-1 --address auto --table kube-bootstrap-controller-prod --kubeconfig /etc/kubernetes/admin.conf',
    'kbctl heartbeat prod-eu-1 --address 203.0.113.10 --readyz https://127.0.0.1:6443/readyz',
  ]);
}

async function run(cli: Cli, name: string, options: Options): Promise<ExitCode> {
  if (cli.output.isForPrograms) throw usageError('heartbeat prints no data: leave out -o.');
  const [opened, { ownAddress, ownServer }, { keepLease, refreshOnce }, { readyzOf }, { passEnvironment }] =
    await Promise.all([
      cli.openForWriting(),
      import('../heartbeat/own-server.ts'),
      import('../heartbeat/agent.ts'),
      import('../heartbeat/own-server.ts'),
      import('../pass-environment.ts'),
    ]);
  const address = ownAddress(options.address);
  const { clock } = opened;
  const { spec } = await registeredCluster(opened.table, name);
  const server = ownServer(spec, address, options.every);

  const { readyz } = options;
  const { environment, loadKubeconfig, close } = await passEnvironment(cli, opened, connectionOf(options));
  const say = (line: string) => cli.output.say(line);
  try {
    const url = readyz === undefined || readyz === false ? {} : { url: readyz };
    const asking = { spec, server, ...url, loadKubeconfig, nowMs: clock.nowMs };
    const ask = readyz === false ? undefined : await readyzOf(asking, cli.signal);
    const { tableUntil } = opened;
    const kept = { cluster: name, address, everyMs: options.every, tableUntil, clock, say, ...(ask && { ask }) };
    if (options.once) return exitCodeOnce(await refreshOnce(kept, cli.signal));
    say(
      `${name}: heartbeat of ${address} every ${options.every / 1000}s, by leases of ${spec.endpoints.leaseSeconds}s, until Ctrl-C.`,
    );
    if (!(await keepLease(kept, cli.signal))) return EXIT.fine;
    const { deregisterSelf } = await import('../heartbeat/agent.ts');
    return await deregisterSelf({ environment, cluster: name, address, say });
  } finally {
    await close();
  }
}

function exitCodeOnce(state: Heartbeat['state']): ExitCode {
  if (state === 'held') return EXIT.fine;
  return state === 'down' ? EXIT.apiServer : EXIT.findings;
}

function parseUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && ['http:', 'https:'].includes(url.protocol)) return text;
  throw new InvalidArgumentError('It is a whole URL, such as https://127.0.0.1:6443/readyz.');
}
