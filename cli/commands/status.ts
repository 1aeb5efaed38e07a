import { Command } from 'commander';
import type { Act, Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { fleetStatus, warnOfPauseOfAll } from '../registered.ts';
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
  const fleets = await Promise.all(names.map((name) => fleetStatus(cli, 'full', name)));
  const statuses = fleets.flatMap(({ clusters }) => clusters);
  const list = { kind: 'ClusterStatusList', total: statuses.length, items: statuses };
  const document = statuses.length === 1 ? { kind: 'ClusterStatus', ...statuses[0] } : list;
  cli.output.object(document, () =>
    fleets
      .flatMap(({ clusters, atMs }) => clusters.flatMap((one) => ['', ...statusLines(one, atMs, cli.output)]))
      .slice(1),
  );
  return exitCodeFor(statuses);
}

async function showFleet(cli: Cli): Promise<ExitCode> {
  const { title } = await cli.openTable();
  const fleet = await fleetStatus(cli, 'brief');
  const { output } = cli;
  if (output.isForPrograms) {
    output.document({ kind: 'FleetStatus', ...fleet });
  } else {
    output.list<ClusterStatus>({
      kind: 'ClusterStatus',
      items: fleet.clusters,
      columns: fleetColumns(fleet.atMs),
      none: `No clusters are registered in ${title}. Register one with "kbctl cluster apply -f FILE".`,
    });
  }
  for (const { name, message } of fleet.unreadable) output.say(`Cannot read ${name}: ${message}`);
  warnOfPauseOfAll(cli, fleet.pausedAll, fleet.atMs);
  return fleet.unreadable.length > 0 ? EXIT.findings : exitCodeFor(fleet.clusters);
}

function exitCodeFor(statuses: readonly ClusterStatus[]): ExitCode {
  return statuses.some(({ health }) => health === 'unhealthy') ? EXIT.findings : EXIT.fine;
}
