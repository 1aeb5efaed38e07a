import { beforeAll } from '@jest/globals';
import type { V1IPAddress, V1Service } from '@kubernetes/client-node';
import { type Asked, type Family, type StockCluster, stockAllocationContract } from '../contract/stock-allocation.ts';
import { eventually } from '../support/eventually.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { runningControlPlane } from './running-control-plane.ts';

const NETWORKING = '/apis/networking.k8s.io/v1';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const SERVICES = '/api/v1/namespaces/default/services';
const PORTS = [{ port: 80 }];
const { apiserver } = runningControlPlane({ serviceClusterIPRange: '10.0.0.0/24,fd00:10::/112' });

type Request = typeof apiserver.request;
const request = ((...sent: Parameters<Request>) => apiserver.request(...sent)) as Request;

async function must(...sent: Parameters<Request>): Promise<void> {
  const { status, body } = await request(...sent);
  if (status >= 300) throw new Error(`${sent[0]} ${sent[1]}: ${JSON.stringify(body)}`);
}

async function outcomeOf(...sent: Parameters<Request>) {
  const { status, body } = await request(...sent);
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
  const { body } = await request<V1Service>('GET', `${SERVICES}/${name}`);
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
    const { status, body } = await request<V1Service>('GET', `${SERVICES}/${name}`);
    return status === 404 ? undefined : (body.spec?.clusterIPs ?? []);
  },
  async records() {
    const { body } = await request<{ items: readonly V1IPAddress[] }>('GET', `${NETWORKING}/ipaddresses`);
    return Object.fromEntries(
      body.items.map(({ metadata, spec }) => {
        const { resource, namespace = '', name } = spec?.parentRef ?? { resource: '', name: '' };
        return [metadata?.name ?? '', `${resource} ${namespace}/${name}`];
      }),
    );
  },
  placeRecord(name, parent) {
    const parentRef =
      parent === undefined
        ? { group: 'example.com', resource: 'holds', name: 'held' }
        : { group: '', resource: 'services', namespace: 'default', name: parent };
    const labels = parent === undefined ? {} : IPV4_LABELS;
    return must('POST', `${NETWORKING}/ipaddresses`, { metadata: { name, labels }, spec: { parentRef } });
  },
  removeRecord: (address) => must('DELETE', `${NETWORKING}/ipaddresses/${address}`),
  createCidr: (name, cidr) =>
    must('POST', `${NETWORKING}/servicecidrs`, { metadata: { name }, spec: { cidrs: [cidr] } }),
  removeCidr: (name) => must('DELETE', `${NETWORKING}/servicecidrs/${name}`),
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
