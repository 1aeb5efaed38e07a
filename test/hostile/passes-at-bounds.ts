import type { KubernetesObject, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { type Kind, RESOURCES } from '../../lib/kubernetes/cluster-port.ts';
import { CredentialMask } from '../../lib/kubernetes/mask-credential.ts';
import { requireObjectBounds } from '../../lib/kubernetes/reply-bounds.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { BOUNDS, fieldOver } from '../../lib/util/bounds.ts';
import { service } from '../repair/services.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { PassWorld } from '../support/pass-world.ts';
import type { Scenarios } from './count-steps.ts';

const list = <Entry>(n: number, entry: (index: number) => Entry) =>
  Array.from({ length: Math.floor(n) }, (_, at) => entry(at));
const address = (net: number, index: number) => `10.${net}.${(index >> 8) & 255}.${index & 255}`;
const port = (index: number) => ({ name: `p${index}`, port: index + 1, protocol: 'TCP' as const });

function objectOf(kind: Kind, name: string, n: number, fields: object): KubernetesObject {
  const { apiVersion, namespaced } = RESOURCES[kind];
  const entries = Object.fromEntries(list(n / 4, (index) => [`k${index}`, 'v']));
  const managedFields = list(n / 4, (index) => ({ manager: `m${index}`, time: `2026-01-01T00:00:${index % 60}Z` }));
  const labels = { ...entries, 'kubernetes.io/service-name': 'kubernetes' };
  const metadata = { name, ...(namespaced && { namespace: 'default' }), labels, annotations: entries, managedFields };
  const conditions = list(n / 4, (index) => ({ type: `c${index}` }));
  return { kind, apiVersion, metadata, status: { conditions }, ...fields } as KubernetesObject;
}

/** Returns all objects that a pass reads. Their entries are proportional to n; with n = 1,000, each list is at its limit. */
function objectsOf(n: number): KubernetesObject[] {
  const ports = list(n / 10, port);
  const half = (net: number) => list(n / 2, (index) => ({ ip: address(net, index), nodeName: `node-${index}` }));
  const others = half(3);
  const subsets = [
    { addresses: half(1), notReadyAddresses: half(2), ports },
    ...list(8, (index) => ({ addresses: others.slice(2 * index, 2 * index + 2), ports: [ports[index] ?? port(0)] })),
  ];
  const endpoints = list(n, (index) => ({ addresses: [address(1, index)], conditions: { ready: true } }));
  const slice = { addressType: 'IPv4', endpoints, ports };
  const cidr = (index: number) => ({
    spec: { cidrs: [`10.${100 + (index >> 8)}.${index & 255}.0/24`, `fd00:${index.toString(16)}::/112`] },
  });
  return [
    objectOf('Service', 'kubernetes', n, { spec: { type: 'ClusterIP', clusterIP: '10.0.0.1', ports } }),
    objectOf('Endpoints', 'kubernetes', n, { subsets }),
    objectOf('EndpointSlice', 'kubernetes', n, slice),
    ...list(n / 10, (index) =>
      objectOf('EndpointSlice', `other-${index}`, 8, { ...slice, endpoints: endpoints.slice(0, 10) }),
    ),
    ...list(n, (index) => objectOf('ServiceCIDR', index === 0 ? 'kubernetes' : `cidr-${index}`, 8, cidr(index))),
  ];
}

/** Returns a claim: valid, duplicate, outside its range, in no range, or invalid. */
function claim(index: number): ServiceClaim {
  const clusterIPs = [address(0, index >> 1), address(100 + (index % 3), index), `fd00::${index}`, 'bad'];
  const ports = list(4, (at) => ({ protocol: 'TCP', nodePort: 30_000 + ((index + at) % 4_000) }));
  const [clusterIP = ''] = clusterIPs;
  const namespace = `n${index % 7}`;
  return service(`s${index}`, { namespace, type: 'NodePort', clusterIP, clusterIPs, ports });
}

function passOf(loop: LoopDefinition, spec: (n: number) => Partial<ClusterSpec>) {
  return (n: number) => {
    const claims = list(n, claim);
    const { port: cluster } = memoryCluster(objectsOf(n));
    const kubernetes = {
      ...cluster,
      services: async function* services() {
        yield claims;
      },
      ipAddresses: async function* ipAddresses() {
        for (let index = 0; index < n; index += 1) {
          const parent = { group: '', resource: 'services', namespace: 'n1', name: `s${index + 1}` };
          const meta = { name: address(0, index), uid: `u${index}`, resourceVersion: '1', createdAtMs: 0 };
          yield [{ ...meta, family: 'IPv4', managedBy: 'ipallocator.k8s.io', parent }];
        }
      },
    };
    const answer = { kind: 'status', status: 200, body: 'ok' } as const;
    const probe = () => Promise.resolve(answer);
    const context = new PassWorld(spec(n)).context({ kubernetes, probe });
    return () => loop.run(context);
  };
}

const apiServers = (n: number) => list(n / 10, (index) => aServer(address(4, index)));
const extraPorts = (n: number) => list(n / 20, (index) => ({ ...port(index), name: `x${index}` }));
const base = aClusterSpec();
const published = (n: number, reconciler: 'lease' | 'master-count'): Partial<ClusterSpec> => ({
  mode: 'enforce',
  apiServers: apiServers(n),
  endpoints: { ...base.endpoints, reconciler, masterCount: Math.max(1, Math.floor(n / 20)), extraPorts: extraPorts(n) },
  service: { ...base.service, reconcile: true },
});
const ranges = (allocator: 'table' | 'apiserver'): Partial<ClusterSpec> => ({
  mode: 'enforce',
  allocator,
  serviceClusterIPRanges: ['10.0.0.0/20', 'fd00::/112'],
  serviceNodePortRange: '30000-32767',
});

export const SCENARIOS: Scenarios = {
  'kubernetes-service by leases': passOf(kubernetesService, (n) => published(n, 'lease')),
  'kubernetes-service by a master count': passOf(kubernetesService, (n) => published(n, 'master-count')),
  'cluster-ip-repair of the table': passOf(clusterIpRepair, () => ranges('table')),
  'cluster-ip-repair of API servers': passOf(clusterIpRepair, () => ranges('apiserver')),
  'node-port-repair of the table': passOf(nodePortRepair, () => ranges('table')),
  'node-port-repair of API servers': passOf(nodePortRepair, () => ranges('apiserver')),
  'system-namespaces': passOf(systemNamespaces, (n) => ({ systemNamespaces: list(n / 10, (index) => `ns-${index}`) })),
  'the check of the bounds themselves': (n) => {
    const objects = objectsOf(n);
    return () => {
      for (const object of objects) requireObjectBounds(object.kind as Kind, object);
    };
  },
  'the check of a cluster spec': (n) => () => fieldOver({ apiServers: apiServers(n) }, BOUNDS['cluster spec']),
  'the search for a credential': (n) => {
    const mask = new CredentialMask({ Authorization: `${'a'.repeat(2 * n)}b${'a'.repeat(2 * n)}` });
    const pieces = [...list(40 * n, () => 'a'), '\\u0061'.repeat(10 * n)].map((text) => Buffer.from(text));
    return () => Array.fromAsync(mask.body(pieces, true));
  },
};
