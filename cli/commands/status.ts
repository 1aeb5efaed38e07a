import { Command } from 'commander';
import type { Act, Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { clusterStatusOf, statusOfAll, warnOfPauseOfAll } from '../registered.ts';
import type { ClusterStatus } from '../status/cluster-status.ts';
import { fleetColumns } from '../status/columns.ts';
import { statusLines } from '../status/status-lines.ts';

export function statusCommand(act: Act): Command {
  return new Command('status')
    .description('Show the leases, last passes, ranges and findings of a cluster, and what needs attention')
    .argument('[cluster]', 'the name of the cluster; default: one line for each')
    .action(act((cli, [name]) => (name === undefined ? showFleet(cli) : showCluster(cli, name))));
}

async function showCluster(cli: Cli, name: string): Promise<ExitCode> {
  const nowMs = await cli.nowMs();
  const status = await clusterStatusOf(cli, name, nowMs);
  cli.output.object({ kind: 'ClusterStatus', ...status }, () => statusLines(status, nowMs, cli.output));
  return exitCodeFor([status]);
}

async function showFleet(cli: Cli): Promise<ExitCode> {
  const { title } = await cli.openTable();
  const nowMs = await cli.nowMs();
  const fleet = await statusOfAll(cli, nowMs, 'brief');
  const { output } = cli;
  if (output.isForPrograms) {
    output.document({ kind: 'FleetStatus', ...fleet });
  } else {
    output.list<ClusterStatus>({
      kind: 'ClusterStatus',
      items: fleet.clusters,
      columns: fleetColumns(nowMs),
      none: `No clusters are registered in ${title}. Register one with "kbctl cluster apply -f FILE".`,
    });
  }
  for (const { name, message } of fleet.unreadable) output.say(`Cannot read ${name}: ${message}`);
  warnOfPauseOfAll(cli, fleet.pausedAll, nowMs);
  return fleet.unreadable.length > 0 ? EXIT.findings : exitCodeFor(fleet.clusters);
}

function exitCodeFor(statuses: readonly ClusterStatus[]): ExitCode {
  return statuses.some(({ health }) => health === 'unhealthy') ? EXIT.findings : EXIT.fine;
}
