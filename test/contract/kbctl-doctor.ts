import { expect, test } from '@jest/globals';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { CLUSTER, type KbctlWorld, printed } from '../support/kbctl-world.ts';

/** Defines the tests of `doctor`: successful checks, failed checks and resolutions. */
export function describeDoctor(world: () => KbctlWorld): void {
  test('kbctl doctor prints how to register a cluster if none is registered', async () => {
    expect(await world().kbctl(['doctor'])).toMatchObject(
      printed(
        1,
        "✓ table: reads, lists, writes and deletes\n✓ clock: agrees with the table's\n✗ clusters: none is registered\n    → ",
      ),
    );
  });

  test('kbctl doctor checks everything of a healthy cluster', async () => {
    await world().register();
    await world().runAllLoops();
    const { code, stdout, stderr } = await world().kbctl(['doctor', CLUSTER]);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `${CLUSTER}: ${world().server} (kubeconfig from file ${world().kubeconfigFile}, context ${CLUSTER})\n`,
    });
    expect(stdout).toContain(`\n\n${CLUSTER}\n✓ spec: mode enforce`);
    expect(stdout).toMatch(/✓ probe: 203\.0\.113\.10, probed at \S+, answered 200\n/);
    expect(stdout).not.toContain('✗');
    expect(stdout).not.toContain('queue');
  });

  test('kbctl doctor -o json prints one document', async () => {
    const { stdout } = await world().kbctl(['doctor', '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({
      apiVersion: 'kbctl/v1',
      kind: 'Doctor',
      ok: true,
      lines: expect.arrayContaining([
        { check: 'clusters', level: 'ok', message: '1 is registered' },
        expect.objectContaining({ cluster: CLUSTER, check: 'service', level: 'ok' }),
      ]),
    });
  });

  test('kbctl doctor reports an API server that does not answer', async () => {
    const file = world().unreachableCluster();
    const { code, stdout } = await world().kbctl(['doctor', CLUSTER, '--kubeconfig', file]);
    expect(code).toBe(1);
    expect(stdout).toContain('✗ api server: ');
    expect(stdout).toContain(`✓ kubeconfig: read from file ${file}: `);
    expect(stdout).not.toContain('rights');
  });

  test('kbctl doctor ends at Ctrl-C while the API server is silent', async () => {
    expect(await world().interruptWhileSilent(['doctor', CLUSTER])).toMatchObject({ code: 130, stdout: '' });
  });

  test('kbctl doctor refuses --kubeconfig without the name of a cluster', async () => {
    const stderr = expect.stringContaining('--kubeconfig needs the name of a cluster.');
    expect(await world().kbctl(['doctor', '--kubeconfig', 'x'])).toMatchObject({ code: 2, stdout: '', stderr });
  });

  test('kbctl doctor fails for a table that does not exist', async () => {
    expect(await world().kbctl(['doctor', CLUSTER, '--table', 'no-such-table'])).toMatchObject(
      printed(1, '✗ table: Table "no-such-table" was not found'),
    );
  });

  test('kbctl doctor reports a registration that cannot be read', async () => {
    const content = { cluster: CLUSTERS, key: 'broken', schema: 1, value: 'nothing' };
    await world().table.put(content, undefined);
    expect(await world().kbctl(['doctor', 'broken'])).toMatchObject(printed(1, '✗ spec: '));
  });
}
