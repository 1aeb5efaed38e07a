import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';

/** Says, before anything is written, whose cluster it is and what the loops may write there. */
export function announcement(spec: ClusterSpec, server: string, tableFolder: string): string[] {
  const { mode, allocator, name } = spec;
  const lines = [`cluster ${name} at ${server}`, `mode ${mode}, allocator ${allocator}`];
  const writes = writesOf(spec);
  if (mode === 'observe') {
    lines.push('nothing is written to the cluster; these writes are told instead:', ...writes);
  } else {
    lines.push('may write, where something is missing or wrong:', ...writes);
  }
  lines.push(`keeps leases, ranges and run records in ${tableFolder}`);
  return lines;
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
