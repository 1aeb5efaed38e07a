import { Command, Option } from 'commander';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { type ConnectionOptions, parseDuration, withConnectionOptions } from '../options.ts';
import { registeredCluster } from '../registered.ts';
import { completeAlways } from '../terminal.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly address: string;
  readonly every: number;
  readonly once?: boolean;
}

const DESCRIPTION = `Refresh the lease of this host's API server, in place of probes

Runs on the host of the API server: it checks /readyz and refreshes the lease in the table. When it ends (Ctrl-C, SIGTERM),
the address is removed from the endpoints, as an API server does when it stops; the next start publishes it again. Without
a next start, the loop probes the address again after an hour. If this command is killed, the loop probes the address as
soon as the lease expires.`;

export function heartbeatCommand(act: Act): Command {
  const command = new Command('heartbeat')
    .description(DESCRIPTION)
    .argument('<cluster>', 'the name of the cluster')
    .requiredOption('--address <ip>', "this host's address in the spec")
    .addOption(
      new Option('--every <duration>', 'the interval; at most two thirds of endpoints.leaseSeconds')
        .argParser(parseDuration)
        .default(10_000, '10s'),
    )
    .option('--once', 'refresh once and end, without removing the address');
  const action = act<Options>((cli, [name = ''], options) => run(cli, name, options));
  return withConnectionOptions(command).action(action);
}

async function run(cli: Cli, name: string, options: Options): Promise<ExitCode> {
  if (cli.output.isForPrograms) throw usageError('heartbeat prints no data: omit -o.');
  const { ownAddress, ownServer, readyzOf } = await import('../heartbeat/own-server.ts');
  const { deregisterSelf, keepLease, refreshOnce } = await import('../heartbeat/agent.ts');
  const { passEnvironment } = await import('../pass-environment.ts');
  const opened = await cli.openForWriting();
  const address = ownAddress(options.address);
  const { clock } = opened;
  const { spec } = await registeredCluster(opened.table, name);
  const server = ownServer(spec, address, options.every);

  await using passes = await passEnvironment(cli, opened, options);
  const { environment, loadKubeconfig } = passes;
  const say = (line: string) => cli.output.say(line);
  const agent = {
    cluster: name,
    address,
    everyMs: options.every,
    tableUntil: opened.tableUntil,
    clock,
    sleep: cli.sleep,
    say,
    ask: await readyzOf(spec, server, { loadKubeconfig, nowMs: clock.nowMs, signal: cli.signal }),
  };
  if (options.once) {
    const state = await refreshOnce(agent, cli.signal);
    if (state === 'down') return EXIT.apiServer;
    return state === 'active' ? EXIT.fine : EXIT.findings;
  }
  say(
    `${name}: refreshing the lease of ${address} (${spec.endpoints.leaseSeconds}s) every ${options.every / 1000}s until Ctrl-C.`,
  );
  // The address must be removed even if the output cannot be written, for example because Ctrl-C also ended its reader.
  return await completeAlways(async () => {
    if (!(await keepLease(agent, cli.signal))) return EXIT.fine;
    return deregisterSelf(agent, environment);
  });
}
