import { expect, test } from '@jest/globals';
import { dispatch } from '../../lib/dispatch/dispatch.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { aHost, SILENT } from '../support/endpoints-world.ts';
import { memoryCluster } from '../support/memory-cluster.ts';

test('16 clusters with 300 records each come to at most 256 probes at a time', async () => {
  const records = Array.from({ length: 300 }, (_, n) => `10.0.${n >> 8}.${n & 255}`);
  let [now, most, all] = [0, 0, 0];
  const probe = async () => {
    [now, all] = [now + 1, all + 1];
    most = Math.max(most, now);
    await new Promise(setImmediate);
    now -= 1;
    return SILENT;
  };
  const { environment, telemetry, register } = aDispatchWorld({
    connect: async () => ({ kubernetes: memoryCluster().port, probe }),
    resolveHost: () => async () => records,
  });
  const names = Array.from({ length: 16 }, (_, n) => `cluster-${n}`);
  await register(...names.map((name) => aClusterSpec({ name, apiServers: [aHost('api.example.com')] })));
  await dispatch(kubernetesService, { force: true }, { environment, telemetry, remainingMs: () => 60_000 });
  expect(all).toBe(16 * 32);
  expect(most).toBeLessThanOrEqual(256);
});
