import { describe, expect, test } from '@jest/globals';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { CLUSTER, documentIn, expectPrinted, failed, type KbctlWorlds, passed } from '../support/kbctl-world.ts';

export function describeDoctor(worlds: KbctlWorlds): void {
  describe('a table without a readable registration', () => {
    const world = worlds.each();

    test('kbctl doctor prints how to register a cluster if none is registered', async () => {
      const lines = [
        '✓ table: reads, lists and writes',
        "✓ clock: agrees with the table's",
        '✗ clusters: none is registered',
      ];
      expectPrinted(await world().kbctl(['doctor']), 1, `${lines.join('\n')}\n    → `);
    });

    test.each([
      ['a table that does not exist', [CLUSTER, '--table', 'no-such-table'], '✗ table: Table "no-such-table" was not'],
      ['a registration that cannot be read', ['broken'], '✗ spec: '],
    ])('kbctl doctor fails for %s', async (_, words, line) => {
      await world().table.put({ cluster: CLUSTERS, key: 'broken', schema: 1, value: 'nothing' }, undefined);
      expectPrinted(await world().kbctl(['doctor', ...words]), 1, line);
    });
  });

  describe('a table after the first passes of a cluster', () => {
    const world = worlds.shared(passed);

    test('kbctl doctor checks everything of a healthy cluster', async () => {
      const checked = await world().kbctl(['doctor', CLUSTER]);
      const probe = /✓ probe: 203\.0\.113\.10, probed at \S+ and published with port 6443, answered 200\n/;
      expectPrinted(checked, 0, `\n\n${CLUSTER}\n✓ spec: mode enforce`, probe);
      expect(checked.stdout).not.toMatch(/✗|queue/);
      const source = `kubeconfig ${world().kubeconfigFile}, context ${CLUSTER}`;
      expect(checked.stderr).toBe(`${CLUSTER}: ${world().server} (${source})\n`);
    });

    test('kbctl doctor -o json prints one document', async () => {
      expect(documentIn(await world().kbctl(['doctor', '-o', 'json']))).toMatchObject({
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
      const checked = await world().kbctl(['doctor', CLUSTER, '--kubeconfig', file]);
      expectPrinted(checked, 1, '✗ api server: ', `✓ kubeconfig: read context there of kubeconfig ${file}:`);
      expect(checked.stdout).not.toContain('rights');
    });

    test('kbctl doctor ends at Ctrl-C while the API server is silent', async () => {
      expect(await world().interruptWhileSilent(['doctor', CLUSTER])).toMatchObject({ code: 130, stdout: '' });
    });

    test('kbctl doctor refuses --kubeconfig without the name of a cluster', async () => {
      const refused = failed(2, '--kubeconfig needs the name of a cluster.');
      expect(await world().kbctl(['doctor', '--kubeconfig', 'x'])).toEqual(refused);
    });
  });
}
