import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ServiceSelection } from '../../lib/kubernetes/cluster-port.ts';

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

/** Returns the claims of a Service that a scenario defines in JSON. */
export function claimOf(json: ServiceJson): ServiceClaim {
  const { metadata, spec } = json;
  return service(metadata.name, {
    namespace: metadata.namespace,
    type: spec.type ?? 'ClusterIP',
    clusterIP: spec.clusterIP ?? '',
    clusterIPs: spec.clusterIPs ?? [],
    ports: (spec.ports ?? []).map(({ protocol = '', nodePort = 0 }) => ({ protocol, nodePort })),
    healthCheckNodePort: spec.healthCheckNodePort ?? 0,
  });
}

export interface ServiceJson {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly spec: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly ports?: readonly { readonly protocol?: string; readonly nodePort?: number }[];
    readonly healthCheckNodePort?: number;
  };
}
