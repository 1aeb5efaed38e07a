import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { ClusterError } from '../kubernetes/errors.ts';
import type { RepairError } from '../repair/errors.ts';
import type { Walk } from '../repair/ledger.ts';
import { reworded } from './repair-job.ts';

/** The snapshot of a list may end while its pages are read. */
const TRIES = 3;

/** A walk, and that into which it enters the claims. */
interface StartedWalk<Entered> {
  readonly walk: Walk;
  readonly entered: Entered;
}

/**
 * Takes every Service through a walk as the pages come, so that a large cluster is never in memory as a whole. A list
 * that has to be started over starts a new walk: half of an old list proves nothing.
 * @param cannotList how the error begins when the list fails
 * @throws ClusterError as `ClusterPort.services` does, `Expired` after three tries
 */
export async function walkServices<Entered>(
  kubernetes: Pick<ClusterPort, 'services'>,
  cannotList: string,
  start: () => StartedWalk<Entered>,
): Promise<StartedWalk<Entered> & { readonly aborted: RepairError | undefined }> {
  for (let attempt = 1; ; attempt++) {
    const started = start();
    try {
      return { ...started, aborted: await walkOnce(kubernetes, started.walk) };
    } catch (error) {
      const isExpired = error instanceof ClusterError && error.code === 'Expired';
      if (!isExpired || attempt === TRIES) throw reworded(cannotList, error);
    }
  }
}

async function walkOnce(kubernetes: Pick<ClusterPort, 'services'>, walk: Walk): Promise<RepairError | undefined> {
  for await (const service of kubernetes.services()) {
    const aborted = walk.see(service);
    if (aborted !== undefined) return aborted;
  }
  return undefined;
}
