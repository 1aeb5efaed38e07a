import { describe, expect, test } from '@jest/globals';
import { handler as allocate } from '../../functions/allocate.ts';
import { handler as clusterIpRepair } from '../../functions/cluster-ip-repair.ts';
import { handler as deregister } from '../../functions/deregister.ts';
import { handler as kubernetesService } from '../../functions/kubernetes-service.ts';
import { handler as nodePortRepair } from '../../functions/node-port-repair.ts';
import { handler as systemNamespaces } from '../../functions/system-namespaces.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';

describe('the functions', () => {
  test.each([
    { name: 'system-namespaces', handler: systemNamespaces },
    { name: 'kubernetes-service', handler: kubernetesService },
    { name: 'cluster-ip-repair', handler: clusterIpRepair },
    { name: 'node-port-repair', handler: nodePortRepair },
  ])('$name runs the loop of its name', async ({ name, handler }) => {
    const { environment, telemetry } = aDispatchWorld();
    const context = { getRemainingTimeInMillis: () => 30_000, environment };
    expect(await handler({}, context)).toEqual({ passes: 0, failed: 0, skipped: 0 });
    expect(telemetry.invocations).toEqual([{ loop: name }]);
  });

  test('deregister asks for a cluster and an address', async () => {
    const { environment } = aDispatchWorld();
    const context = { getRemainingTimeInMillis: () => 25_000, environment };
    await expect(deregister({}, context)).rejects.toMatchObject({ code: 'BadEvent' });
  });

  test('allocate asks for a request', async () => {
    const { environment } = aDispatchWorld();
    const context = { getRemainingTimeInMillis: () => 30_000, environment };
    await expect(allocate({}, context)).rejects.toMatchObject({ code: 'BadEvent' });
  });

  test('system-namespaces makes the namespaces of a cluster', async () => {
    const { environment, register, created } = aDispatchWorld();
    await register({ name: 'demo' });
    const event = { 'detail-type': 'Scheduled Event', time: '2026-01-01T12:00:00Z' };
    await systemNamespaces(event, { getRemainingTimeInMillis: () => 30_000, environment });
    expect(created.get('demo')?.map(({ metadata }) => metadata.name)).toEqual([
      'kube-system',
      'kube-public',
      'default',
      'kube-node-lease',
    ]);
  });
});
