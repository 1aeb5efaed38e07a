import { Command } from 'commander';
import type { Act } from '../cli.ts';
import { clusterApply } from './cluster-apply.ts';
import { clusterCloseAllocation } from './cluster-close-allocation.ts';
import { clusterDelete } from './cluster-delete.ts';
import { clusterGet, clusterList, clusterSchema } from './cluster-get.ts';
import { clusterSetMode } from './cluster-set-mode.ts';
import { clusterTakeOver } from './cluster-take-over.ts';

/** `kbctl cluster ...`: what is registered, and how. */
export function clusterCommand(act: Act): Command {
  return new Command('cluster')
    .description('Register clusters and look at what is registered')
    .addCommand(clusterApply(act))
    .addCommand(clusterGet(act))
    .addCommand(clusterList(act))
    .addCommand(clusterDelete(act))
    .addCommand(clusterSetMode(act))
    .addCommand(clusterTakeOver(act))
    .addCommand(clusterCloseAllocation(act))
    .addCommand(clusterSchema(act));
}
