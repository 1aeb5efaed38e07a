import { Command } from 'commander';
import type { Act, Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { clusterStatusOf, statusOfAll, warnOfPauseOfAll } from '../registered.ts';
import type { ClusterStatus } from '../status/cluster-status.ts';
import { fleetColumns } from '../status/columns.ts';
import { statusLines } from '../status/status-lines.ts';
import { type WatchOptions, watched, withWatchOption } from '../watch.ts';

export function statusCommand(act: Act): Command {
  const command = new Command('status')
    .description('Show the leases, last passes, ranges and findings of a cluster, and what needs attention')
    .argument('[cluster...]', 'the names of clusters; default: one line for each')
    .action(
      act<WatchOptions>((cli, names, options) =>
        watched(cli, options, () => (names.length === 0 ? showFleet(cli) : showClusters(cli, names))),
      ),
    );
  return withWatchOption(command);
}

async function showClusters(cli: Cli, names: readonly string[]): Promise<ExitCode> {
  const nowMs = await cli.nowMs();
  const statuses = await Promise.all(names.map((name) => clusterStatusOf(cli, name, nowMs)));
  const [only, ...others] = statuses;
  const lines = statuses.flatMap((status, at) => [...(at > 0 ? [''] : []), ...statusLines(status, nowMs, cli.output)]);
  const document =
    only !== undefined && others.length === 0
      ? { kind: 'ClusterStatus', ...only }
      : { kind: 'ClusterStatusList', total: statuses.length, items: statuses };
  cli.output.object(document, () => lines);
  return exitCodeFor(statuses);
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
