import { expect, test } from '@jest/globals';
import type { EndpointSliceObject, ServiceObject } from '../../lib/cluster/published-objects.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Invoked, startHandlers } from '../support/handlers.ts';
import { published, SERVICE_PATH, SLICE_PATH } from '../support/kubernetes-service-objects.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

const LOOP = 'kubernetes-service';
const RANGE = '10.0.0.0/24';
const RANGES = `${RANGE},fd00:10::/112`;
const [FIRST, SECOND] = ['10.9.8.7', '2001:db8::7'] as const;
const SECOND_PATH = `${SLICE_PATH}-ipv6`;
const ROLE = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/kube-bootstrap-controller';

/** An API server that creates the Service with one family, and no endpoints. */
const { apiserver } = runningControlPlane({ serviceClusterIPRange: RANGES });

/* The tests run in order: each starts with the state that the previous test left. */
const handlers = runningHandlers(async () => {
  const { kubeconfigFile } = await applyShippedRbac(apiserver);
  await allowSlices({ resourceNames: ['kubernetes', 'kubernetes-ipv6'], verbs: ['delete', 'get', 'update'] });
  const probe = { url: `${apiserver.url}/readyz` };
  const spec = {
    apiServers: [FIRST, SECOND].map((address) => ({ address, probe })),
    serviceClusterIPRange: RANGES,
    service: { securePort: apiserver.port, ipFamilyPolicy: 'PreferDualStack' },
  };
  // Only the tests advance this clock, so that the duration of a pass has no effect.
  const startedAtMs = Date.now();
  return { kubeconfigFile, spec, clock: () => startedAtMs };
});

/** Adds a rule for slices to the role, as the comments of deploy/rbac.yaml describe. */
async function allowSlices(rule: object): Promise<void> {
  const { body } = await apiserver.request<{ rules: object[] }>('GET', ROLE);
  const slices = { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], ...rule };
  expect(await apiserver.request('PUT', ROLE, { ...body, rules: [...body.rules, slices] })).toMatchObject({
    status: 200,
  });
}

/** Runs passes until one succeeds, because the API server needs a moment to apply a new rule. */
function pass(): Promise<Invoked> {
  return eventually(async () => {
    const invoked = await handlers.run(LOOP);
    expect(invoked.errors).toEqual([]);
    return invoked;
  });
}

test('an API server with two ranges gives the Service both families, and accepts the slice of the second family', async () => {
  await pass();
  const { body: service } = await apiserver.request<ServiceObject & { spec: object }>('GET', SERVICE_PATH);
  expect(service.spec).toMatchObject({ ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4', 'IPv6'] });
  expect(await published(apiserver)).toEqual({ endpoints: [FIRST], slice: [FIRST] });
  const { body: slice } = await apiserver.request<EndpointSliceObject>('GET', SECOND_PATH);
  expect(slice).toMatchObject({
    addressType: 'IPv6',
    endpoints: [{ addresses: [SECOND], conditions: { ready: true } }],
    metadata: { labels: { 'endpointslice.kubernetes.io/managed-by': 'kube-bootstrap-controller' } },
    ports: [{ name: 'https', port: apiserver.port, protocol: 'TCP' }],
  });
  expect((await pass()).changes).toEqual([]);
});

test('the second slice is deleted when the spec has only one family again, and the Service keeps both families', async () => {
  const apiServers = [{ address: FIRST, probe: { url: `${apiserver.url}/readyz` } }];
  await handlers.register({ apiServers, service: { securePort: apiserver.port } });
  expect((await pass()).changes).toContain('deleted endpointslice default/kubernetes-ipv6');
  expect(await apiserver.request('GET', SECOND_PATH)).toMatchObject({ status: 404 });
  expect(await published(apiserver)).toEqual({ endpoints: [FIRST], slice: [FIRST] });
  expect((await pass()).changes).toEqual([]);
});

test('with prune, a pass deletes a slice of another writer; if the writer creates it again, the pass reports the writer and delays the second deletion', async () => {
  await allowSlices({ verbs: ['delete'] });
  const apiServers = [{ address: FIRST, probe: { url: `${apiserver.url}/readyz` } }];
  await handlers.register({ apiServers, endpoints: { prune: true } });
  const foreign = {
    metadata: { name: 'kubernetes-x7k2p', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.9.8.66'] }],
  };
  const slices = SLICE_PATH.replace(/\/kubernetes$/, '');
  const make = async () => {
    const reply = await apiserver.request('POST', `${slices}?fieldManager=another-controller`, foreign);
    expect(reply).toMatchObject({ status: 201 });
  };
  await make();
  expect((await pass()).changes).toEqual(['deleted endpointslice default/kubernetes-x7k2p']);
  await make();
  const { changes, findings } = await pass();
  expect(changes).toEqual([]);
  expect(findings).toContainEqual(expect.stringMatching(/^twoOwners: .* two owners: another-controller changed/));
  handlers.advance(30_000);
  expect((await pass()).changes).toContain('deleted endpointslice default/kubernetes-x7k2p');
  expect(await published(apiserver)).toEqual({ endpoints: [FIRST], slice: [FIRST] });
});

/** Runs two passes by an API server with this range. Returns the result of the second, and the addresses of the Service. */
async function passesBy(etcd: Awaited<ReturnType<typeof startEtcd>>, serviceClusterIPRange: string) {
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange });
  const probe = { url: `${apiserver.url}/readyz` };
  const handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: {
      mode: 'enforce',
      serviceClusterIPRange: RANGES,
      apiServers: [FIRST, SECOND].map((address) => ({ address, probe })),
      service: { securePort: apiserver.port, ipFamilyPolicy: 'PreferDualStack' },
    },
  });
  await handlers.run('kubernetes-service');
  handlers.advance(10_000);
  const { errors, findings } = await handlers.run('kubernetes-service');
  const { clusterIPs } = (await apiserver.request<ServiceObject>('GET', SERVICE_PATH)).body.spec;
  await handlers.close();
  return { errors, findings, clusterIPs };
}

test('when the API server gets a second range, a Service with PreferDualStack gets a second address', async () => {
  const etcd = await startEtcd();
  afterThisTest(() => etcd.close());
  const refused = expect.stringMatching(/^serviceDiffers: .*has one family, and the API server refuses the other/);
  const before = await passesBy(etcd, RANGE);
  expect(before).toEqual({ errors: [], findings: [refused], clusterIPs: ['10.0.0.1'] });
  const after = await passesBy(etcd, RANGES);
  const second = expect.stringMatching(/^fd00:10::/);
  expect(after).toEqual({ errors: [], findings: [], clusterIPs: ['10.0.0.1', second] });
});
