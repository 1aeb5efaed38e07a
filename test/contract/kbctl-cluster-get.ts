import { expect, test } from '@jest/globals';
import { CLUSTER, failed, type KbctlWorlds, ran, registered } from '../support/kbctl-world.ts';

export function describeClusterGet(worlds: KbctlWorlds): void {
  const world = worlds.shared(registered);

  test('kbctl cluster get prints the registered clusters', async () => {
    const titles = 'NAME        MODE      ALLOCATOR   GENERATION   OWNER    PAUSED';
    const cluster = 'prod-eu-1   enforce   table       1            <none>';
    expect(await world().kbctl(['cluster', 'get'])).toEqual(ran(0, `${titles}\n${cluster}\n`));
  });

  test.each([
    ['one cluster', 'yaml', [CLUSTER]],
    ['all clusters', 'json', []],
  ])('kbctl cluster get prints %s as %s, and applying the output changes nothing', async (_, format, names) => {
    const { stdout: stdin } = await world().kbctl(['cluster', 'get', ...names, '-o', format]);
    const applied = await world().kbctl(['cluster', 'apply', '-f', '-', '--dry-run'], { stdin });
    expect(applied).toEqual(ran(0, `${CLUSTER}: unchanged\n`));
  });

  test.each([
    [['cluster', 'get', 'prod-eu']],
    [['get', 'leases', 'prod-eu']],
    [['run-once', 'cluster-ip-repair', 'prod-eu']],
    [['deregister', 'prod-eu', '203.0.113.10']],
    [['doctor', 'prod-eu']],
  ])('kbctl %j suggests the nearest name for a cluster that is not registered', async (words) => {
    const refusal = 'error: Cluster "prod-eu" not found. Did you mean prod-eu-1?\n';
    expect(await world().kbctl(words)).toEqual(ran(3, '', refusal));
  });

  test('kbctl cluster get prints the resolution if the table does not answer', async () => {
    const env = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' };
    expect(await world().kbctl(['cluster', 'get'], { env })).toMatchObject(failed(5, 'try again'));
  });
}
