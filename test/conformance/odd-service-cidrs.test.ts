import { beforeAll, expect, test } from '@jest/globals';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { running } from '../support/running.ts';
import { runningHandlers } from './running-control-plane.ts';

/* The repair of IPAddresses in a cluster without kube-controller-manager: no other program waits until a ServiceCIDR is unused. */

const RANGE = '10.0.0.0/24';
const CIDRS = '/apis/networking.k8s.io/v1/servicecidrs';
const etcd = running(startEtcd);
const apiserver = running(() =>
  startKubeApiserver({ etcd, hooksOff: true, serviceClusterIPRange: RANGE, readyPath: '/livez' }),
);
const handlers = runningHandlers(() => ({
  kubeconfigFile: apiserver.kubeconfigFile,
  spec: {
    serviceClusterIPRange: RANGE,
    repair: { ipAddresses: true },
    apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
    service: { securePort: apiserver.port },
  },
}));

const repair = () => handlers.run('cluster-ip-repair');

async function created(path: string, name: string, spec: object): Promise<number> {
  return (await apiserver.request('POST', path, { metadata: { name }, spec })).status;
}

const withAddress = (name: string, clusterIP: string) =>
  created('/api/v1/namespaces/default/services', name, { clusterIP, ports: [{ port: 80 }] });

beforeAll(async () => {
  for (const loop of ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair'] as const) {
    expect(await handlers.run(loop)).toMatchObject({ errors: [] });
  }
});

test('if a ServiceCIDR is deleted while a Service has one of its addresses, the IPAddress stays, and no other Service gets the address', async () => {
  const used = { cidrs: ['10.3.0.0/24'] };
  expect(await created(CIDRS, 'used', used)).toBe(201);
  await eventually(async () => expect(await withAddress('user', '10.3.0.9')).toBe(201));
  expect((await apiserver.request('DELETE', `${CIDRS}/used`)).status).toBe(200);
  for (let pass = 0; pass < 3; pass++) {
    handlers.advance(180_000);
    const { changes, errors, findings } = await repair();
    expect([errors, findings]).toEqual([[], [expect.stringMatching(/^outOfRange: .*10\.3\.0\.9/)]]);
    expect(changes.filter((change) => change.includes('IPAddress'))).toEqual([]);
  }
  expect(await created(CIDRS, 'used', used)).toBe(201);
  await eventually(async () => expect(await withAddress('free', '10.3.0.10')).toBe(201));
  expect(await withAddress('second', '10.3.0.9')).toBe(422);
  expect(await repair()).toMatchObject({ errors: [], findings: [] });
});

test('a pass creates the deleted ServiceCIDR kubernetes again, with the second range of the spec', async () => {
  expect((await apiserver.request('DELETE', `${CIDRS}/kubernetes`)).status).toBe(200);
  const changes = [`created servicecidr kubernetes: ${RANGE}`];
  expect(await repair()).toMatchObject({ errors: [], changes, findings: [] });
  await eventually(async () => expect(await withAddress('again', '10.0.0.201')).toBe(201));
  await handlers.register({ serviceClusterIPRange: `${RANGE},fd00::/112` });
  const updated = `updated servicecidr kubernetes: ${RANGE} fd00::/112`;
  expect(await repair()).toMatchObject({ errors: [], changes: expect.arrayContaining([updated]) });
  const { body } = await apiserver.request('GET', `${CIDRS}/kubernetes`);
  expect(body).toMatchObject({ spec: { cidrs: [RANGE, 'fd00::/112'] } });
});
