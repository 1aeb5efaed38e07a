import { Command } from 'commander';
import type { Act } from '../cli.ts';
import { clusterApply, clusterDiff } from './cluster-apply.ts';
import { clusterCloseAllocation, clusterDelete, clusterSetMode, clusterTakeOver } from './cluster-changes.ts';
import { clusterGet, clusterSchema } from './cluster-get.ts';

/** `kbctl cluster ...`: what is registered, and how. */
export function clusterCommand(act: Act): Command {
  return new Command('cluster')
    .description('Register clusters, and change their registrations')
    .addCommand(clusterApply(act))
    .addCommand(clusterDiff(act))
    .addCommand(clusterGet(act))
    .addCommand(clusterDelete(act))
    .addCommand(clusterSetMode(act))
    .addCommand(clusterTakeOver(act))
    .addCommand(clusterCloseAllocation(act))
    .addCommand(clusterSchema(act));
}
