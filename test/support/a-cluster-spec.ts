import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../../cli/spec/spec-fault.ts';
import type { ApiServerSpec, ClusterSpec, ProbeSpec, SharedHostSpec } from '../../lib/spec/cluster-spec.ts';

type Nested = 'endpoints' | 'service' | 'intervalSeconds';
export type SpecFields = Partial<Omit<ClusterSpec, Nested>> & {
  readonly [Name in Nested]?: Partial<ClusterSpec[Name]>;
};

const PROBE = { path: '/readyz', authenticate: false };

export function aServer(
  address: string,
  probe: Partial<ProbeSpec> = {},
): Extract<ApiServerSpec, { readonly address: string }> {
  return { address, kind: 'server', probe: { ...PROBE, ...probe } };
}

export function serversAt(...addresses: readonly string[]) {
  return addresses.map((address) => aServer(address));
}

/** Returns an API server with a source of addresses. Default: the DNS records of the host. */
export function aHost(
  host: string,
  source: Pick<Partial<SharedHostSpec>, 'targetGroupArn' | 'serviceRef'> = {},
): SharedHostSpec {
  return { host, kind: 'shared', probe: PROBE, ...source };
}

/** Returns a valid spec with all defaults, except for the given fields. */
export function aClusterSpec({ endpoints, service, intervalSeconds, ...fields }: SpecFields = {}): ClusterSpec {
  return {
    name: 'demo',
    mode: 'enforce',
    allocator: 'apiserver',
    kubeconfig: { file: 'kubeconfig.yml' },
    apiServers: [aServer('10.9.8.7')],
    serviceClusterIPRanges: ['10.0.0.0/24'],
    serviceNodePortRange: '30000-32767',
    endpoints: {
      reconciler: 'lease',
      masterCount: 1,
      leaseSeconds: 15,
      reconcilePorts: true,
      extraPorts: [],
      ...endpoints,
    },
    service: { port: 443, securePort: 6443, nodePort: 0, extraPorts: [], reconcile: false, ...service },
    repair: { ipAddresses: false },
    systemNamespaces: ['kube-system', 'kube-public', 'default', 'kube-node-lease'],
    intervalSeconds: {
      'system-namespaces': 60,
      'kubernetes-service': 10,
      'cluster-ip-repair': 180,
      'node-port-repair': 180,
      ...intervalSeconds,
    },
    maxEventsPerPass: 50,
    ...fields,
  };
}

export function specIn(text: string): ClusterSpec {
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new Error(describeFaults('the spec of the test', result.faults));
  return result.spec;
}
