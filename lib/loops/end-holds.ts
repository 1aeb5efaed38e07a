import { canonicalAddress } from '../allocator/ip-address.ts';
import type { KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort, resultOrFault } from '../kubernetes/cluster-port.ts';
import { isSurelyOver } from '../range/hold.ts';
import { HOLDS_SELECTOR, holdIn } from '../range/hold-ip-address.ts';
import { serviceKey } from '../repair/address-faults.ts';
import type { Services } from './ip-address-calls.ts';
import type { PassContext, PassReport } from './pass.ts';

/** A report with this many findings gets no more findings about holds that cannot end. */
const MOST_UNENDED = 200;

/** Returns whether the pass may delete IPAddresses; `undefined` if the API server does not answer the question. */
export async function mayEndHolds(kubernetes: ClusterPort): Promise<boolean | undefined> {
  try {
    return await kubernetes.allows('delete', 'IPAddress');
  } catch (error) {
    if (error instanceof ClusterError) return undefined;
    throw error;
  }
}

/** Returns whether the pass that saved this state may delete IPAddresses. A caller of `kbctl` may have other rights. */
export function mayEndHoldsIn(state: unknown): boolean {
  return Object(state)['mayEndHolds'] === true;
}

/** Ends expired holds: deletes each unchanged IPAddress whose address no Service has. A hold that cannot end is a finding. */
export async function endHolds(
  report: PassReport,
  { kubernetes, nowMs }: PassContext,
  services: Services,
  mayEnd: boolean,
): Promise<PassReport> {
  const changes = [...report.changes];
  const findings = [...report.findings];
  try {
    const expired = (await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR)).flatMap((object) => {
      const hold = holdIn(object);
      return hold !== undefined && isSurelyOver(hold, nowMs()) ? [{ object, hold }] : [];
    });
    const owners = addressOwners(expired.length === 0 ? [] : services.values());
    // Passes begin with different holds. Otherwise, a webhook that does not answer for one hold would block all later holds.
    const first = nowMs() % (expired.length || 1);
    for (const { object, hold } of [...expired.slice(first), ...expired.slice(0, first)]) {
      const { name: item } = object.metadata;
      const outcome = whyKept(owners.get(item), mayEnd) ?? (await deleteHeld(kubernetes, object));
      if (outcome === 'deleted') changes.push(`released ${item}, whose hold of ${hold.owner} expired`);
      else if (outcome !== undefined && findings.length < MOST_UNENDED) {
        const message = `The hold of ${hold.owner} on ${item} expired and is not released: ${outcome}`;
        findings.push({ type: 'notCorrected', message, item });
      }
    }
    return { ...report, changes, findings };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const message = `Expired holds were not released: ${error.message}`;
    const failure = new ClusterError(error.code, message, { cause: error });
    return { ...report, changes, findings, errors: [...report.errors, failure] };
  }
}

/** Returns a map from each address, in canonical form, to the Service that has the address. */
export function addressOwners(services: Iterable<ServiceClaim>): ReadonlyMap<string, string> {
  return new Map(
    [...services].flatMap((service) =>
      service.clusterIPs.map((text) => [canonicalAddress(text) ?? text, serviceKey(service)] as const),
    ),
  );
}

function whyKept(owner: string | undefined, mayEnd: boolean): string | undefined {
  if (owner !== undefined) return `Service ${owner} has the address.`;
  if (mayEnd) return undefined;
  return 'passes may not delete IPAddresses. Allow them "delete" of "ipaddresses", or release it with "kbctl release ip".';
}

/** Returns `deleted`, or the API server's refusal; `undefined` if the object has changed or the pass may not write. */
async function deleteHeld(kubernetes: ClusterPort, object: KubernetesObject): Promise<string | undefined> {
  const result = await resultOrFault(kubernetes.delete(object));
  if (result instanceof ClusterError) return result.message;
  return result === 'deleted' ? 'deleted' : undefined;
}
