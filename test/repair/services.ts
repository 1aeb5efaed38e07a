import type { FindingType } from '../../lib/cluster/finding.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import {
  ClusterError,
  type ClusterErrorCode,
  type ClusterPort,
  type ServiceSelection,
} from '../../lib/kubernetes/cluster-port.ts';
import type { PassReport } from '../../lib/loops/pass.ts';

/** Returns a Service in the namespace `a` with these claims. */
export function service(name: string, claims: Partial<ServiceClaim> = {}): ServiceClaim {
  return {
    namespace: 'a',
    name,
    uid: `uid-of-${name}`,
    resourceVersion: '1',
    type: 'ClusterIP',
    clusterIP: '',
    clusterIPs: [],
    ports: [],
    healthCheckNodePort: 0,
    createdAtMs: 0,
    ...claims,
  };
}

export function withAddresses(name: string, ...clusterIPs: string[]): ServiceClaim {
  return service(name, { clusterIP: clusterIPs[0] ?? '', clusterIPs });
}

export function withNodePorts(name: string, ...nodePorts: number[]): ServiceClaim {
  return service(name, { type: 'NodePort', ports: nodePorts.map((nodePort) => ({ protocol: 'TCP', nodePort })) });
}

/** Returns whether the list of an API server with this selection contains the Service. */
export function isSelected({ clusterIP, type }: ServiceClaim, selection: ServiceSelection = 'all'): boolean {
  if (selection === 'withClusterIPs') return clusterIP !== 'None' && clusterIP !== '';
  return selection === 'all' || (type !== 'ClusterIP' && type !== 'ExternalName');
}

export function countsByType({ findings }: PassReport): Partial<Record<FindingType, number>> {
  const counts: Partial<Record<FindingType, number>> = {};
  for (const { type } of findings) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

/** Returns a list that fails when it is read. */
export function brokenList(code: ClusterErrorCode): AsyncIterable<never> {
  const next = () => Promise.reject(new ClusterError(code, `the list failed: ${code}`));
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Returns a cluster that can only list Services and ServiceCIDRs. Calls `services` when a list starts. */
export function listing(
  services: () => Iterable<ServiceClaim> | AsyncIterable<ServiceClaim>,
  serviceCidrs: Readonly<Record<string, readonly string[]>> = {},
): ClusterPort {
  const cidrs = Object.entries(serviceCidrs).map(([name, cidrs]) => ({ metadata: { name }, spec: { cidrs } }));
  const port: Pick<ClusterPort, 'services' | 'ipAddresses' | 'list'> = {
    list: async () => cidrs as never,
    async *services(selection) {
      for await (const service of services()) if (isSelected(service, selection)) yield [service];
    },
    ipAddresses: () => brokenList('Rejected'),
  };
  return port as ClusterPort;
}
