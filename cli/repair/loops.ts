import { clusterIpRebuild, clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRebuild, nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';

export function loopFor(word: 'cluster-ip' | 'node-port', rebuild: boolean): LoopDefinition {
  if (word === 'cluster-ip') return rebuild ? clusterIpRebuild : clusterIpRepair;
  return rebuild ? nodePortRebuild : nodePortRepair;
}
