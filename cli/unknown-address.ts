import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { nearestName } from '../lib/cluster/nearest-name.ts';

/** What to say after an address that is not known: the one that was probably meant, or those that there are. */
export function knownInstead(address: string, { apiServers }: ClusterSpec, leased: readonly string[] = []): string {
  const named = apiServers.map((server) => ('address' in server ? server.address : server.host));
  const known = [...new Set([...named, ...leased])];
  const nearest = nearestName(address, known);
  return nearest === undefined ? `it has ${known.join(', ')}.` : `did you mean ${nearest}?`;
}
