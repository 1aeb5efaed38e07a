import { expect, test } from '@jest/globals';
import type { ServiceObject } from '../../lib/cluster/published-objects.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { startHandlers } from '../support/handlers.ts';
import { SERVICE_PATH } from '../support/kubernetes-service-objects.ts';

const RANGE = '10.31.0.0/16';
const BOTH = `${RANGE},2001:db8:31::/112`;

/** Runs two passes by an API server with this range. Returns the result of the second, and the addresses of the Service. */
async function passesBy(etcd: Awaited<ReturnType<typeof startEtcd>>, serviceClusterIPRange: string) {
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange });
  const probe = { url: `${apiserver.url}/readyz` };
  const handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: {
      mode: 'enforce',
      serviceClusterIPRange: BOTH,
      apiServers: ['10.9.8.7', '2001:db8::10'].map((address) => ({ address, probe })),
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

test('a Service with PreferDualStack and one family gets the other when the API server gets a second range', async () => {
  const etcd = await startEtcd();
  afterThisTest(() => etcd.close());
  const refused = expect.stringMatching(/^serviceDiffers: .*has one family, and the API server refuses the other/);
  const before = await passesBy(etcd, RANGE);
  expect(before).toEqual({ errors: [], findings: [refused], clusterIPs: ['10.31.0.1'] });
  const after = await passesBy(etcd, BOTH);
  const second = expect.stringMatching(/^2001:db8:31::/);
  expect(after).toEqual({ errors: [], findings: [], clusterIPs: ['10.31.0.1', second] });
});
