import { ClusterError } from '../kubernetes/cluster-port.ts';
import { HOLDS_SELECTOR, holdIn } from '../range/held-address.ts';
import { isSurelyOver } from '../range/hold.ts';
import type { PassContext, PassReport } from './pass.ts';

/**
 * Ends expired holds of cluster IPs where API servers allocate: deletes the IPAddress of each, if it is unchanged since it
 * was read. Returns the report with the changes.
 */
export async function endHolds(report: PassReport, { kubernetes, nowMs }: PassContext): Promise<PassReport> {
  const changes = [...report.changes];
  try {
    for (const object of await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR)) {
      const hold = holdIn(object);
      if (hold === undefined || !isSurelyOver(hold, nowMs())) continue;
      if ((await kubernetes.delete(object)) !== 'deleted') continue;
      changes.push(`released ${object.metadata.name}, whose hold of ${hold.owner} expired`);
    }
    return { ...report, changes };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const message = `Expired holds were not released: ${error.message}`;
    const failure = new ClusterError(error.code, message, { cause: error });
    return { ...report, changes, errors: [...report.errors, failure] };
  }
}
