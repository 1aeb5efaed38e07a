import { type ClusterSpec, LOOPS } from '../lib/cluster/cluster-spec.ts';

export interface Announced {
  readonly server: string;
  readonly tableFolder: string;
  /** The URL of the status page, or the reason why there is none. */
  readonly page?: string;
  readonly notes: readonly string[];
  readonly hints: readonly string[];
}

/** Returns the announcement before any write: the cluster, the possible writes, and what to expect. */
export function announcement(spec: ClusterSpec, { server, tableFolder, page, notes, hints }: Announced): string[] {
  const { mode, allocator, name } = spec;
  return [
    `cluster ${name} at ${server}`,
    ...(page === undefined ? [] : [`Status page: ${page}`]),
    `mode ${mode}, allocator ${allocator}`,
    mode === 'observe'
      ? 'Nothing is written to the cluster. The loops report what they would write if it is missing or wrong:'
      : 'The loops write what is missing or wrong:',
    ...writesOf(spec),
    `Leases, ranges and run records are kept in ${tableFolder}.`,
    ...notes,
    ...(hints.length === 0 ? [] : ['', 'Try, in another terminal:', ...hints.map((hint) => `  ${hint}`)]),
    '',
    `All loops run now, and then ${intervals(spec)}.`,
    'A pass that changes and finds nothing is silent; --verbose logs each. Press Ctrl-C to end.',
    '',
  ];
}

/**
 * Returns `kubernetes-service every 10 s, cluster-ip-repair and node-port-repair every 180 s`, the most frequent first.
 */
function intervals({ intervalSeconds }: ClusterSpec): string {
  const bySeconds = Map.groupBy(LOOPS, (loop) => intervalSeconds[loop]);
  return [...bySeconds]
    .sort(([one], [other]) => one - other)
    .map(([seconds, loops]) => `${listed(loops)} every ${seconds} s`)
    .join(', ');
}

/** `a`, `a and b`, `a, b and c`. */
function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function writesOf({ systemNamespaces, serviceClusterIPRanges, endpoints, apiServers, service }: ClusterSpec): string[] {
  const published = apiServers.map((server) => ('address' in server ? server.address : server.host)).join(', ');
  const lines = [
    `  namespaces ${systemNamespaces.join(', ')}`,
    `  Service default/kubernetes (port ${service.port}), and ServiceCIDR kubernetes (${serviceClusterIPRanges.join(', ')}) where the Service needs it`,
  ];
  if (endpoints.reconciler !== 'none') {
    lines.push(
      `  Endpoints and EndpointSlice default/kubernetes (${published || 'no API server is named'}, port ${service.securePort})`,
    );
  }
  return [...lines, '  Events about Services whose addresses or ports are wrong'];
}
