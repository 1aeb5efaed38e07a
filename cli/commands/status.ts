import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import type { ClusterStatus } from '../../lib/status/cluster-status.ts';
import { fleetJson, statusJson } from '../../lib/status/status-json.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, usageError } from '../errors.ts';
import { parseDuration, withExamples } from '../options.ts';
import type { Plain } from '../output.ts';
import { statusOf, statusOfAll } from '../registered.ts';
import { fleetColumns, statusLines } from '../status/status-lines.ts';
import { clearScreen } from '../terminal.ts';

interface Options extends GlobalOptions {
  readonly watch?: boolean;
  readonly interval: number;
}

/** `kbctl status [CLUSTER] [--watch]`. */
export function statusCommand(act: Act): Command {
  const command = new Command('status')
    .description('Show what is known of a cluster: leases, last passes, ranges, findings, and what needs attention')
    .argument('[cluster]', 'its name; without it there is a line for each cluster')
    .option('-w, --watch', 'show it again and again until Ctrl-C')
    .addOption(
      new Option('--interval <duration>', 'how often, with --watch').argParser(parseDuration).default(2_000, '2s'),
    )
    .action(act<Options>((cli, [name], options) => (options.watch ? watch(cli, name, options) : show(cli, name))));
  return withExamples(command, [
    'kbctl status --table kube-bootstrap-controller-prod',
    'kbctl status prod-eu-1 --watch',
    `kbctl status -o json | jq '.clusters[] | select(.health == "bad") | .name'`,
  ]);
}

/** Fails with 1 when something needs attention, so that scripts notice. */
async function show(cli: Cli, name: string | undefined): Promise<ExitCode> {
  return name === undefined ? showFleet(cli) : showCluster(cli, name);
}

async function showCluster(cli: Cli, name: string): Promise<ExitCode> {
  const nowMs = await cli.nowMs();
  const status = await statusOf(cli, name, nowMs);
  const document = { kind: 'ClusterStatus', ...(statusJson(status) as unknown as Record<string, Plain>) };
  cli.output.object(document, () => statusLines(status, nowMs, cli.output));
  return exitCodeFor([status]);
}

async function showFleet(cli: Cli): Promise<ExitCode> {
  const { title } = await cli.openTable();
  const nowMs = await cli.nowMs();
  const fleet = await statusOfAll(cli, nowMs, 'brief');
  const { output } = cli;
  if (output.isForPrograms) {
    output.document({ kind: 'FleetStatus', ...(fleetJson(fleet) as unknown as Record<string, Plain>) });
  } else if (fleet.clusters.length === 0) {
    output.say(`No cluster is registered in ${title}: kbctl cluster apply -f FILE registers one.`);
  } else {
    output.lines(output.table(fleetColumns(nowMs), fleet.clusters));
  }
  for (const { name, message } of fleet.unreadable) output.say(`${name} cannot be read: ${message}`);
  if (fleet.pausedAll !== undefined) {
    const { untilMs, by, reason } = fleet.pausedAll;
    output.say(`All are paused until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`);
  }
  return fleet.unreadable.length > 0 ? EXIT.findings : exitCodeFor(fleet.clusters);
}

function exitCodeFor(statuses: readonly ClusterStatus[]): ExitCode {
  return statuses.some(({ health }) => health === 'bad') ? EXIT.findings : EXIT.fine;
}

/** Ends with Ctrl-C, which is how it is meant to end. */
async function watch(cli: Cli, name: string | undefined, { interval }: Options): Promise<ExitCode> {
  const { output } = cli;
  if (output.isForPrograms)
    throw usageError('--watch is for people: without it, -o json and -o yaml give one document.');
  const redraws = output.terminal.out.isTTY === true;
  while (!cli.signal.aborted) {
    if (redraws) clearScreen(output.terminal.out);
    else output.lines([`--- ${new Date(await cli.nowMs()).toISOString()}`]);
    try {
      await show(cli, name);
    } catch (error) {
      if (cli.signal.aborted) break;
      throw error;
    }
    await sleep(interval, undefined, { signal: cli.signal }).catch(() => undefined);
  }
  return EXIT.fine;
}
