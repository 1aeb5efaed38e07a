import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import type { RepairError } from '../repair/errors.ts';
import type { Walk } from '../repair/ledger.ts';
import { reworded } from './repair-job.ts';

/**
 * Takes every Service through a walk while the list arrives, so that a large cluster is never in memory as a whole. A
 * list that does not come to its end proves nothing: the call throws, and what was entered is not to be used.
 * @param cannotList how the error begins when the list fails
 * @throws ClusterError as `ClusterPort.services` does
 */
export async function walkServices(
  kubernetes: Pick<ClusterPort, 'services'>,
  cannotList: string,
  walk: Walk,
): Promise<RepairError | undefined> {
  try {
    for await (const service of kubernetes.services()) {
      const aborted = walk.see(service);
      if (aborted !== undefined) return aborted;
    }
    return undefined;
  } catch (error) {
    throw reworded(cannotList, error);
  }
}
