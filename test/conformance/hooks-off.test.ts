import { expect, test } from '@jest/globals';
import { FIELD_MANAGER, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { ServiceObject } from '../../lib/cluster/published-objects.ts';
import { initialiseNodePorts } from '../support/etcd-client.ts';
import { runAllLoops } from '../support/handlers.ts';
import {
  ENDPOINTS_PATH,
  published,
  SERVICE_PATH,
  SLICE_PATH,
  versionsOfEverything,
} from '../support/kubernetes-service-objects.ts';
import { runningControlPlane, runningHandlers, SERVICE_CIDRS, SERVICES } from './running-control-plane.ts';

/** The objects that a stock API server creates by itself. The API server of this test does not create them. */
const BOOTSTRAPPED = {
  'namespace default': '/api/v1/namespaces/default',
  'namespace kube-node-lease': '/api/v1/namespaces/kube-node-lease',
  'ServiceCIDR kubernetes': `${SERVICE_CIDRS}/kubernetes`,
  'Service kubernetes': SERVICE_PATH,
  'Endpoints kubernetes': ENDPOINTS_PATH,
  'EndpointSlice kubernetes': SLICE_PATH,
};

const { etcd, apiserver } = runningControlPlane({ hooksOff: true });

/* The tests run in order: each starts with the state that the previous test left. */
const handlers = runningHandlers(() => ({
  kubeconfigFile: apiserver.kubeconfigFile,
  spec: {
    mode: 'observe',
    apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
    service: { securePort: apiserver.port },
  },
}));

/** Returns the field managers of each bootstrapped object, or `undefined` if the object does not exist. */
async function writers(): Promise<Record<string, string | undefined>> {
  const entries = Object.entries(BOOTSTRAPPED).map(async ([what, path]) => {
    const { status, body } = await apiserver.request<KubernetesObject>('GET', path);
    if (status === 404) return [what, undefined] as const;
    const managers = new Set(body.metadata.managedFields?.map(({ manager }) => manager));
    return [what, [...managers].join(' and ')] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

function allWrittenBy(manager: string | undefined): Record<string, string | undefined> {
  return Object.fromEntries(Object.keys(BOOTSTRAPPED).map((what) => [what, manager]));
}

test('an observing pass of every loop reports the missing objects and creates none', async () => {
  expect(await writers()).toEqual(allWrittenBy(undefined));

  const passes = await runAllLoops(handlers);

  expect(passes.flatMap(({ errors }) => errors)).toEqual([]);
  // Passes write leases and claims to the table in mode observe as well.
  expect(passes.flatMap(({ changes }) => changes).filter((change) => !/lease|claimed in/.test(change))).toEqual([]);
  expect(passes.flatMap(({ wouldWrite }) => wouldWrite)).toEqual([
    'create Namespace default',
    'create Namespace kube-node-lease',
    expect.stringMatching(/^create Service default\/kubernetes: .*spec\.clusterIP \+ "10\.0\.0\.1"/),
    expect.stringMatching(/^create Endpoints default\/kubernetes with 10\.9\.8\.7 :\d+$/),
    expect.stringMatching(/^create EndpointSlice default\/kubernetes with 10\.9\.8\.7 :\d+$/),
  ]);
  expect(await writers()).toEqual(allWrittenBy(undefined));
});

test('the kubernetes-service loop creates the namespace and the ServiceCIDR that the Service needs', async () => {
  await handlers.register({ mode: 'enforce' });

  const { changes, errors } = await handlers.run('kubernetes-service');

  expect(errors).toEqual([]);
  expect(changes.filter((change) => change.startsWith('created'))).toEqual([
    'created namespace default',
    'created servicecidr kubernetes: 10.0.0.0/24',
    'created service default/kubernetes: 10.0.0.1',
    'created endpoints default/kubernetes: 10.9.8.7',
    'created endpointslice default/kubernetes: 10.9.8.7',
  ]);
});

test('all bootstrapped objects exist after a pass of every loop, and only our field manager wrote these objects', async () => {
  const passes = await runAllLoops(handlers);

  expect(passes.flatMap(({ errors, findings }) => [...errors, ...findings])).toEqual([]);
  expect(await writers()).toEqual(allWrittenBy(FIELD_MANAGER));
  expect(await apiserver.request('GET', BOOTSTRAPPED['ServiceCIDR kubernetes'])).toMatchObject({
    body: { spec: { cidrs: ['10.0.0.0/24'] } },
  });
});

test('a second pass of every loop changes nothing; if a namespace was deleted, a pass of system-namespaces creates it again', async () => {
  const before = await versionsOfEverything(apiserver);
  const passes = await runAllLoops(handlers);
  expect(passes.flatMap(({ changes, errors }) => [...changes, ...errors])).toEqual([]);
  expect(await versionsOfEverything(apiserver)).toEqual(before);

  await etcd.delete('/registry/namespaces/kube-node-lease');
  const { changes } = await handlers.run('system-namespaces');
  expect(changes).toEqual(['created namespace kube-node-lease']);
});

test('if the Service kubernetes was deleted, a pass restores the Service and its Endpoints with the same addresses, and reports no second owner', async () => {
  for (let deletion = 1; deletion <= 2; deletion++) {
    expect(await apiserver.request('DELETE', SERVICE_PATH)).toMatchObject({ status: 200 });
    const { changes, findings } = await handlers.run('kubernetes-service');
    // An API server before version 1.37 deletes the Endpoints with the Service.
    expect(changes[0]).toBe('created service default/kubernetes: 10.0.0.1');
    expect(await published(apiserver)).toEqual({ endpoints: ['10.9.8.7'], slice: ['10.9.8.7'] });
    expect([findings, (await handlers.run('kubernetes-service')).findings]).toEqual([[], []]);
  }
});

test('a pass restores the Service kubernetes after its type was changed to ExternalName', async () => {
  const service = async () => (await apiserver.request<ServiceObject>('GET', SERVICE_PATH)).body;
  const before = await service();
  const { clusterIP: _, clusterIPs: __, ...fields } = before.spec;
  const external = { ...before, spec: { ...fields, type: 'ExternalName', externalName: 'api.example.com' } };
  expect(await apiserver.request('PUT', SERVICE_PATH, external)).toMatchObject({ status: 200 });
  await handlers.register({ service: { securePort: apiserver.port, reconcile: true } });
  expect(await handlers.run('kubernetes-service')).toMatchObject({ errors: [] });
  expect((await service()).spec).toEqual(before.spec);
});

test('the API server refuses Services of type NodePort until the range of node ports is in etcd', async () => {
  const spec = { type: 'NodePort', ports: [{ port: 80 }] };
  expect(await apiserver.request('POST', SERVICES, { metadata: { name: 'early' }, spec })).toMatchObject({
    status: 500,
    body: { message: expect.stringContaining('cannot allocate resources of type servicenodeportallocations') },
  });
  const { errors } = await handlers.run('node-port-repair');
  expect(errors).toEqual([]);

  await initialiseNodePorts(etcd);

  expect(await apiserver.request('POST', SERVICES, { metadata: { name: 'late' }, spec })).toMatchObject({
    status: 201,
    body: { spec: { ports: [{ nodePort: expect.any(Number) }] } },
  });
  const { findings } = await handlers.run('node-port-repair');
  expect(findings).toEqual([]);
  expect(await handlers.record('node-port-repair')).toMatchObject({ counts: { allocated: 1 } });
});
