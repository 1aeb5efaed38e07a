import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';

/** Returns the addresses that there are. The nearest one is not suggested: it is another API server, and alive. */
export function knownInstead({ apiServers }: ClusterSpec, leased: readonly string[] = []): string {
  const named = apiServers.map((server) => ('address' in server ? server.address : server.host));
  return `it has ${[...new Set([...named, ...leased])].join(', ')}.`;
}
