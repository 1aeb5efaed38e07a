import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { type AllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { found } from '../support/found.ts';
import { PassWorld } from '../support/pass-world.ts';

/** Runs one pass of both repair loops in a cluster with these Services. */
export async function repairPass(
  { table, clock }: Pick<AllocateWorld, 'table' | 'clock'>,
  services: readonly ServiceClaim[] = [],
): Promise<void> {
  const { spec, rangesGeneration } = found(await readCluster(table, CLUSTER));
  for (const loop of [clusterIpRepair, nodePortRepair]) {
    const context = new PassWorld(spec).list(...services).context({
      rangesGeneration,
      table,
      passId: `pass-at-${clock.nowMs}`,
      nowMs: () => clock.nowMs,
    });
    const { errors } = await loop.run(context);
    if (errors[0] !== undefined) throw errors[0];
  }
}
