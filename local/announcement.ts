import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';

export interface Announced {
  readonly server: string;
  readonly tableFolder: string;
  /** The URL of the status page. */
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
    'All loops run now, and then at their intervals. A pass that changes and finds nothing is silent.',
    'Press Ctrl-C to end.',
    '',
  ];
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
