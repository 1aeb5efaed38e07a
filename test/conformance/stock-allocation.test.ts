import { beforeAll, expect, test } from '@jest/globals';
import type { V1Service } from '@kubernetes/client-node';
import { type Asked, type Family, type StockCluster, stockAllocationContract } from '../contract/stock-allocation.ts';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { IP_ADDRESSES, parentsOf, runningControlPlane, SERVICE_CIDRS, SERVICES } from './running-control-plane.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const PORTS = [{ port: 80 }];
const { etcd, apiserver } = runningControlPlane({ serviceClusterIPRange: '10.0.0.0/24,fd00:10::/112' });

type Request = Parameters<typeof apiserver.request>;
const must = async (...sent: Request): Promise<void> => void (await apiserver.send(...sent));

async function outcomeOf(...sent: Request) {
  const { status, body } = await apiserver.request(...sent);
  if (status < 300) return 'stored';
  if (status === 422 || status === 409) return 'refused';
  throw new Error(`${sent[0]} ${sent[1]}: ${JSON.stringify(body)}`);
}

const query = ({ isDryRun }: Asked) => (isDryRun ? '?dryRun=All' : '');
const metadataOf = (name: string, { isRefused, isFinalized }: Asked) => ({
  name,
  labels: isRefused ? { refuse: 'yes' } : {},
  ...(isFinalized && { finalizers: ['example.com/waits'] }),
});

/**
 * Waits until the second of the creation is over. The repair of a real API server deletes an IPAddress of a second family that is
 * created in the same second as its Service, because the Service that it has read does not list it.
 */
async function isOlderThanItsSecond(name: string): Promise<void> {
  const { body } = await apiserver.request<V1Service>('GET', `${SERVICES}/${name}`);
  if (Date.now() < Date.parse(String(body.metadata?.creationTimestamp)) + 1_000) throw new Error(`${name} is too new`);
}

const cluster: StockCluster = {
  create(name, wanted, asked = {}) {
    const ipFamilies = wanted.map((each) => (each === 'IPv6' || each.includes(':') ? 'IPv6' : 'IPv4'));
    const isNamed = wanted.some((each) => !each.startsWith('IPv'));
    const clusterIPs = isNamed ? wanted.filter((each) => !each.startsWith('IPv')) : undefined;
    const ipFamilyPolicy = wanted.length > 1 ? 'RequireDualStack' : 'SingleStack';
    const addresses = clusterIPs && { clusterIP: clusterIPs[0], clusterIPs };
    const spec = { ports: PORTS, ipFamilies, ipFamilyPolicy, ...addresses };
    return outcomeOf('POST', SERVICES + query(asked), { metadata: metadataOf(name, asked), spec });
  },
  async change(name, families: readonly Family[], asked = {}) {
    await eventually(() => isOlderThanItsSecond(name));
    const none = { clusterIP: null, clusterIPs: null, ipFamilies: null, ipFamilyPolicy: null };
    const spec =
      families.length === 0
        ? { ...none, type: 'ExternalName', externalName: 'a.test' }
        : {
            type: 'ClusterIP',
            externalName: null,
            ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
          };
    return outcomeOf('PATCH', `${SERVICES}/${name}${query(asked)}`, { metadata: metadataOf(name, asked), spec });
  },
  remove: (name) => must('DELETE', `${SERVICES}/${name}`),
  removeFinalizer: (name) => must('PATCH', `${SERVICES}/${name}`, { metadata: { finalizers: null } }),
  async addressesOf(name) {
    const { status, body } = await apiserver.request<V1Service>('GET', `${SERVICES}/${name}`);
    return status === 404 ? undefined : (body.spec?.clusterIPs ?? []);
  },
  async records() {
    const parents = [...(await parentsOf(apiserver))];
    return Object.fromEntries(
      parents.map(([address, { resource, namespace = '', name }]) => [address, `${resource} ${namespace}/${name}`]),
    );
  },
  placeRecord(name, parent) {
    const parentRef =
      parent === undefined
        ? { group: 'example.com', resource: 'holds', name: 'held' }
        : { group: '', resource: 'services', namespace: 'default', name: parent };
    const labels = parent === undefined ? {} : IPV4_LABELS;
    return must('POST', IP_ADDRESSES, { metadata: { name, labels }, spec: { parentRef } });
  },
  removeRecord: (address) => must('DELETE', `${IP_ADDRESSES}/${address}`),
  createCidr: (name, cidr) => must('POST', SERVICE_CIDRS, { metadata: { name }, spec: { cidrs: [cidr] } }),
  removeCidr: (name) => must('DELETE', `${SERVICE_CIDRS}/${name}`),
  repair: (name) => must('PATCH', `${SERVICES}/${name}`, { metadata: { labels: { changed: 'yes' } } }),
  eventually,
};

beforeAll(async () => {
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['CREATE', 'UPDATE'] };
  const policy = {
    metadata: { name: 'refuse' },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: "!('refuse' in object.metadata.?labels.orValue({}))" }],
    },
  };
  const binding = { metadata: { name: 'refuse' }, spec: { policyName: 'refuse', validationActions: ['Deny'] } };
  await must('POST', `${ADMISSION}/validatingadmissionpolicies`, policy);
  await must('POST', `${ADMISSION}/validatingadmissionpolicybindings`, binding);
  await eventually(async () => {
    if ((await cluster.create('tried', ['IPv4'], { isRefused: true, isDryRun: true })) === 'stored') {
      throw new Error('the policy has no effect yet');
    }
  });
});

stockAllocationContract('a real kube-apiserver', cluster);

/** Stores a Service with this address, as a restored backup does. */
function store(name: string, address: string): Promise<void> {
  const policies = { ipFamilyPolicy: 'SingleStack', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' };
  const addresses = { type: 'ClusterIP', clusterIP: address, clusterIPs: [address], ipFamilies: ['IPv4'] };
  const ports = [{ port: 80, protocol: 'TCP', targetPort: 80 }];
  return etcd.putServices([storedService('default', name, { ...addresses, ...policies, ports })]);
}

/* docs/tasks/address-conflict.md depends on this behaviour of API servers. The contract uses neither of the addresses. */
test.each([
  ['the Service that the IPAddress names', '10.0.0.13', 'named-13', 'second-13'],
  ['the other Service', '10.0.0.14', 'second-14', 'named-14'],
])(
  'if two Services have the same address and %s is deleted, the IPAddress refers to the remaining Service after the next write of that Service',
  async (_, address, deleted, other) => {
    const [named = '', second = ''] = [deleted, other].toSorted();
    const parent = async () => (await parentsOf(apiserver)).get(address)?.name;
    await store(named, address);
    await eventually(async () => expect(await parent()).toBe(named));
    await store(second, address);

    await cluster.remove(deleted);
    // The repair of the API server may have recorded the address for the other Service already.
    expect([undefined, other]).toContain(await parent());

    await cluster.repair(other);
    await eventually(async () => expect(await parent()).toBe(other));
  },
);
