import type { ClusterStatus, FleetStatus } from '../lib/status/cluster-status.ts';
import type { StatusDetails } from '../lib/status/read-inputs.ts';
import { readClusterStatus, readFleetStatus } from '../lib/status/read-status.ts';
import type { Cli } from './cli.ts';
import { notRegistered } from './registered.ts';

/** How one cluster is. @throws CliError when none is registered by that name. */
export async function statusOf(cli: Cli, name: string, nowMs: number): Promise<ClusterStatus> {
  const { table } = await cli.openTable();
  const status = await readClusterStatus(table, name, nowMs);
  if (status === undefined) throw await notRegistered(table, name);
  return status;
}

/** How all clusters are, with progress on a terminal. */
export async function statusOfAll(cli: Cli, nowMs: number, details: StatusDetails = 'full'): Promise<FleetStatus> {
  const { table, tableName } = await cli.openTable();
  const progress = cli.progress('reading clusters');
  try {
    return await readFleetStatus(table, tableName, nowMs, {
      details,
      onProgress: (done, total) => progress.tell(`read ${done} of ${total} clusters`),
    });
  } finally {
    progress.end();
  }
}
