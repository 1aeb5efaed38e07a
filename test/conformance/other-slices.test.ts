import { expect, test } from '@jest/globals';
import type { EndpointSliceObject, ServiceObject } from '../../lib/endpoints/objects.ts';
import { eventually } from '../support/eventually.ts';
import type { Invoked } from '../support/handlers.ts';
import { published, SERVICE_PATH, SLICE_PATH } from '../support/kubernetes-service-objects.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

const LOOP = 'kubernetes-service';
const RANGES = '10.0.0.0/24,fd00:10::/112';
const [FIRST, SECOND] = ['10.9.8.7', '2001:db8::7'] as const;
const SECOND_PATH = `${SLICE_PATH}-ipv6`;
const ROLE = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/kube-bootstrap-controller';

/** It makes the Service of one family by itself, and no endpoints. */
const { apiserver } = runningControlPlane({ serviceClusterIPRange: RANGES });

/* In order, each from where the one before ended. */
const handlers = runningHandlers(async () => {
  const { kubeconfigFile } = await applyShippedRbac(apiserver);
  await allowSlices({ resourceNames: ['kubernetes', 'kubernetes-ipv6'], verbs: ['delete', 'get', 'update'] });
  const probe = { url: `${apiserver.url}/readyz` };
  const spec = {
    apiServers: [FIRST, SECOND].map((address) => ({ address, probe })),
    serviceClusterIPRange: RANGES,
    service: { securePort: apiserver.port, ipFamilyPolicy: 'PreferDualStack' },
  };
  // A clock that the tests put forward: how long a pass takes means nothing.
  const startedAtMs = Date.now();
  return { kubeconfigFile, spec, clock: () => startedAtMs };
});

/** The rights that the comments of deploy/rbac.yaml add. */
async function allowSlices(rule: object): Promise<void> {
  const { body } = await apiserver.request<{ rules: object[] }>('GET', ROLE);
  const slices = { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], ...rule };
  expect(await apiserver.request('PUT', ROLE, { ...body, rules: [...body.rules, slices] })).toMatchObject({
    status: 200,
  });
}

/** A pass; the API server may not know a right yet. */
function pass(): Promise<Invoked> {
  return eventually(async () => {
    const invoked = await handlers.run(LOOP);
    expect(invoked.errors).toEqual([]);
    return invoked;
  });
}

test('an API server of two ranges gives the Service both families, and accepts the slice of the second', async () => {
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

test('the second slice is deleted when the spec asks for one family again, and the Service keeps both', async () => {
  const apiServers = [{ address: FIRST, probe: { url: `${apiserver.url}/readyz` } }];
  await handlers.register({ apiServers, service: { securePort: apiserver.port } });
  expect((await pass()).changes).toContain('deleted endpointslice default/kubernetes-ipv6');
  expect(await apiserver.request('GET', SECOND_PATH)).toMatchObject({ status: 404 });
  expect(await published(apiserver)).toEqual({ endpoints: [FIRST], slice: [FIRST] });
  expect((await pass()).changes).toEqual([]);
});

test('with prune, a slice of another writer is deleted; if the writer creates it again, a finding names the writer and the next deletion waits', async () => {
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
