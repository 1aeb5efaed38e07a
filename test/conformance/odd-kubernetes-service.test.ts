import { expect, test } from '@jest/globals';
import type { ServiceObject } from '../../lib/cluster/published-objects.ts';
import { SERVICE_PATH } from '../support/kubernetes-service-objects.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

const LOOP = 'kubernetes-service';
const { apiserver } = runningControlPlane({ endpointReconcilerType: 'none' });
const handlers = runningHandlers(() => ({
  kubeconfigFile: apiserver.kubeconfigFile,
  spec: {
    mode: 'enforce',
    apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
    service: { securePort: apiserver.port, reconcile: true },
  },
}));

test('a Service that became of type ExternalName gets its address again', async () => {
  await handlers.run(LOOP);
  const before = (await apiserver.request<ServiceObject>('GET', SERVICE_PATH)).body;
  const { clusterIP: _, clusterIPs: __, ...fields } = before.spec;
  const external = { ...before, spec: { ...fields, type: 'ExternalName', externalName: 'api.example.com' } };
  expect((await apiserver.request('PUT', SERVICE_PATH, external)).status).toBe(200);
  handlers.advance(10_000);
  const { errors } = await handlers.run(LOOP);
  expect(errors).toEqual([]);
  const after = (await apiserver.request<ServiceObject>('GET', SERVICE_PATH)).body;
  expect(after.spec).toMatchObject({ type: 'ClusterIP', clusterIPs: before.spec.clusterIPs ?? [] });
  expect(after.spec.externalName).toBeUndefined();
  handlers.advance(10_000);
  expect(await handlers.run(LOOP)).toMatchObject({ changes: [], findings: [] });
});
