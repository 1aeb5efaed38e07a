import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { SERVICE_PATH, SLICE_PATH } from '../support/kubernetes-service-objects.ts';
import { type RawRequests, rawRequests } from '../support/raw-requests.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { runningControlPlane } from './running-control-plane.ts';

const { etcd, apiserver } = runningControlPlane({ hooksOff: true });
/** Requests with the token that the functions have: what a thief of the kubeconfig can do. */
let asFunctions: RawRequests;

const NAMESPACES = '/api/v1/namespaces';
const IN_DEFAULT = `${NAMESPACES}/default`;
const SERVICES = `${IN_DEFAULT}/services`;
const SLICES = SLICE_PATH.replace(/\/kubernetes$/, '');
const SERVICE_CIDRS = '/apis/networking.k8s.io/v1/servicecidrs';
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
const ALIEN = '203.0.113.66';
const SLICE = { addressType: 'IPv4', endpoints: [{ addresses: [ALIEN] }], ports: [] };
const EVENT = { eventTime: '2026-01-01T00:00:00.000000Z', action: 'a', reason: 'r', type: 'Normal', note: 'n' };
const KUBELET = { reportingController: 'kubelet', reportingInstance: 'i' };
const FOREIGN_EVENT = { ...EVENT, ...KUBELET, regarding: { namespace: 'default' } };
const PORTS = [{ port: 443 }];
const SUBSETS = [{ addresses: [{ ip: ALIEN }], ports: PORTS }];
const OTHER = { metadata: { name: 'other' } };
const PRIVILEGED = { 'pod-security.kubernetes.io/enforce': 'privileged' };
const NODE_SELECTOR = { 'scheduler.alpha.kubernetes.io/node-selector': 'x=y' };

beforeAll(async () => {
  for (const [path, object] of [
    [NAMESPACES, { metadata: { name: 'default' } }],
    [SERVICE_CIDRS, serviceCidr('10.0.0.0/24')],
    [SLICES, { metadata: named('kubernetes', 'kubernetes'), ...SLICE }],
    [EVENTS, { metadata: { name: 'foreign' }, ...FOREIGN_EVENT }],
  ] as const) {
    expect(await apiserver.request('POST', path, object)).toMatchObject({ status: 201 });
  }
  const service = { metadata: { name: 'kubernetes' }, spec: { clusterIP: '10.0.0.1', ports: PORTS } };
  await eventually(async () =>
    expect(await apiserver.request('POST', SERVICES, service)).toMatchObject({ status: 201 }),
  );
  // The attacks that make one are those before the first pass.
  await etcd.delete('/registry/servicecidrs/kubernetes');
  const { token } = await applyShippedRbac(apiserver);
  asFunctions = rawRequests({ url: apiserver.url, caFile: apiserver.caFile, token });
});

afterAll(() => asFunctions?.close());

function named(name: string, service: string) {
  return { name, labels: { 'kubernetes.io/service-name': service } };
}

/** Each is within the roles: `create` knows no names, and RBAC reads no objects. That of a PUT changes what is there. */
const ATTACKS = [
  ['make another Service', 'POST', SERVICES, { ...OTHER, spec: { clusterIP: 'None' } }],
  ['redirect another Service by Endpoints', 'POST', `${IN_DEFAULT}/endpoints`, { ...OTHER, subsets: SUBSETS }],
  ['redirect another Service by a slice', 'POST', SLICES, { metadata: named('other-1', 'other'), ...SLICE }],
  ['add a slice to the kubernetes Service', 'POST', SLICES, { metadata: generated(), ...SLICE }],
  ['turn its slice to another Service', 'PUT', SLICE_PATH, { metadata: named('kubernetes', 'other') }],
  ['take an external IP', 'PUT', SERVICE_PATH, { spec: { externalIPs: [ALIEN] } }],
  ['select pods', 'PUT', SERVICE_PATH, { spec: { selector: { app: 'evil' } } }],
  ['make a load balancer', 'PUT', SERVICE_PATH, { spec: { type: 'LoadBalancer' } }],
  ['make any other namespace', 'POST', NAMESPACES, OTHER],
  ['make a privileged system namespace', 'POST', NAMESPACES, nodeLeases({ labels: PRIVILEGED })],
  ['annotate a system namespace', 'POST', NAMESPACES, nodeLeases({ annotations: NODE_SELECTOR })],
  ['make another ServiceCIDR', 'POST', SERVICE_CIDRS, { ...OTHER, spec: { cidrs: ['10.1.0.0/24'] } }],
  ['make the default ServiceCIDR of public addresses', 'POST', SERVICE_CIDRS, serviceCidr('203.0.113.0/24')],
  ["report an event in another controller's name", 'POST', EVENTS, { metadata: { name: 'e' }, ...FOREIGN_EVENT }],
  ["continue another controller's event", 'PATCH', `${EVENTS}/foreign`, { series: series() }],
] as const;

function generated() {
  return { ...named('', 'kubernetes'), generateName: 'kubernetes-' };
}

function nodeLeases(metadata: object) {
  return { metadata: { name: 'kube-node-lease', ...metadata } };
}

function serviceCidr(cidr: string) {
  return { metadata: { name: 'kubernetes' }, spec: { cidrs: [cidr] } };
}

function series() {
  return { count: 2, lastObservedTime: '2026-01-01T00:00:00.000000Z' };
}

async function statusOf([, method, path, body]: (typeof ATTACKS)[number]): Promise<number> {
  const dryRun = `${path}?dryRun=All`;
  if (method !== 'PUT') return (await asFunctions.request(method, dryRun, body)).status;
  const { body: current } = await apiserver.request<{ metadata: object; spec?: object }>('GET', path);
  const { metadata = {}, spec = {} } = body as { metadata?: object; spec?: object };
  const changed = {
    ...current,
    metadata: { ...current.metadata, ...metadata },
    ...(current.spec && { spec: { ...current.spec, ...spec } }),
  };
  return (await asFunctions.request('PUT', dryRun, changed)).status;
}

/* In order: the last one takes the policy away. */
test.each(ATTACKS)('the policy refuses the token of the functions to %s', async (...attack) => {
  expect(await statusOf(attack)).toBe(403);
});

test('the roles allow all of that without the binding of the policy', async () => {
  const binding = 'validatingadmissionpolicybindings/kube-bootstrap-controller';
  await apiserver.request('DELETE', `/apis/admissionregistration.k8s.io/v1/${binding}`);
  for (const attack of ATTACKS) {
    await eventually(async () =>
      expect([attack[0], await statusOf(attack)]).toEqual([attack[0], attack[1] === 'POST' ? 201 : 200]),
    );
  }
});
