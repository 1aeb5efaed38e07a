import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { NAMESPACES } from '../../local/stand-in/resources.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { serviceError, startFaultProxy } from '../support/fault-proxy.ts';
import { CLUSTER, documentIn, expectPrinted, type KbctlWorlds, passed, ran } from '../support/kbctl-world.ts';

export function describeStatus(worlds: KbctlWorlds): void {
  describe('kbctl status before the first passes', () => {
    const world = worlds.each();

    test('kbctl status prints how to register a cluster if none is registered', async () => {
      const advice = ran(0, '', expect.stringContaining('Register one with "kbctl cluster apply -f FILE"'));
      expect(await world().kbctl(['status'])).toEqual(advice);
    });

    test('kbctl status shows a cluster that has had no pass yet', async () => {
      await world().register();
      const shown = await world().kbctl(['status', CLUSTER]);
      expectPrinted(shown, 0, /203\.0\.113\.10 +never seen/, /cluster-ip-repair +never ran/);
    });
  });

  describe('kbctl status after the first passes of a cluster', () => {
    const world = worlds.shared(passed);

    test('kbctl status of a healthy cluster shows leases, loops and ranges', async () => {
      const shown = await world().kbctl(['status', CLUSTER]);
      expectPrinted(
        shown,
        0,
        `${CLUSTER}  good  enforce, allocator table, generation 1\n`,
        /203\.0\.113\.10 +valid .*answered 200/,
        /kubernetes-service +good /,
        /10\.0\.0\.0\/24 +cluster IPs +▏ +<1% +\d of 254/,
      );
      expect(shown.stdout).not.toContain('Needs attention');
      expect(shown.stderr).toBe('');
    });

    test.each([
      ['status', 'a line for each cluster', [], /^NAME +HEALTH .*\nprod-eu-1 +good +enforce +1\/1 /],
      ['get leases', 'the leases of a cluster', [CLUSTER], /^ADDRESS .*\n203\.0\.113\.10 +valid/],
      ['get ranges', 'the ranges of a cluster', [CLUSTER], /^RANGE .*\n10\.0\.0\.0\/24 +cluster IPs/],
      ['get runs', 'the last runs of the loops', [CLUSTER], /^LOOP .*\nsystem-namespaces +good/],
      ['get leases', 'a list of all clusters', ['-o', 'yaml'], /^.*\nkind: LeaseList\n.*\nitems:\n +- cluster: prod/],
      ['get findings', 'nothing for a healthy cluster', [CLUSTER], /^$/],
    ])('kbctl %s prints %s', async (command, _, words, pattern) => {
      expectPrinted(await world().kbctl([...command.split(' '), ...words]), 0, pattern);
    });

    test('kbctl status with several names prints each of these clusters, and refuses an unknown one', async () => {
      expectPrinted(await world().kbctl(['status', CLUSTER, CLUSTER]), 0, /^prod-eu-1 [\s\S]*\n\nprod-eu-1 /);
      expect(documentIn(await world().kbctl(['status', CLUSTER, CLUSTER, '-o', 'json']))).toMatchObject({ total: 2 });
      expect(await world().kbctl(['status', CLUSTER, 'other'])).toMatchObject({ code: 3, stdout: '' });
    });

    test('kbctl status and get with -o name print only the names of clusters', async () => {
      for (const words of [['status'], ['status', CLUSTER], ['cluster', 'get'], ['get', 'leases']]) {
        expect(await world().kbctl([...words, '-o', 'name'])).toEqual(ran(0, `${CLUSTER}\n`));
      }
    });

    test('kbctl status and get with --watch are repeated until Ctrl-C', async () => {
      for (const words of [['status'], ['get', 'leases']]) {
        const watching = world().start([...words, '--watch']);
        await watching.untilItPrints(/\n\n.*\n.*\n\n/);
        expect(await watching.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
      }
    });

    test('kbctl status with --watch continues after a read of the table that fails', async () => {
      const proxy = await startFaultProxy(world().endpoint);
      afterThisTest(proxy.close);
      const watching = world().start(['status', '--watch'], { env: { AWS_ENDPOINT_URL: proxy.endpoint } });
      await watching.untilItPrints(/prod-eu-1 +good/);
      proxy.plan('Query', serviceError(400, 'AccessDeniedException', 'not allowed'));
      await watching.untilItPrints(/The table does not answer, retrying: .*\n[\s\S]*prod-eu-1 +good/);
      expect((await watching.end('SIGINT')).code).toBe(130);
    });

    test('shell completion offers the clusters of the table that the command line sets with --table', async () => {
      const { tableName, endpoint } = world();
      const words = ['--table', tableName, '--endpoint-url', endpoint, 'status', 'prod'];
      expect(await world().kbctl(['completion', 'bash', '--', ...words])).toEqual(ran(0, `${CLUSTER}\n`));
    });

    test('kbctl status -o json prints one document', async () => {
      expect(documentIn(await world().kbctl(['status', CLUSTER, '-o', 'json']))).toMatchObject({
        apiVersion: 'kbctl/v1',
        kind: 'ClusterStatus',
        name: CLUSTER,
        health: 'good',
        apiServers: [{ address: '203.0.113.10', state: 'active', lastProbe: 'answered 200' }],
      });
    });

    test('kbctl page writes a file for one cluster or for all, and reports a file that it cannot write', async () => {
      const file = world().file('status.html', '');
      expect(await world().kbctl(['page', CLUSTER, '-f', file])).toMatchObject({ code: 0, stdout: '' });
      expect(readFileSync(file, 'utf8')).toMatch(/<h1>prod-eu-1<\/h1>[\s\S]*203\.0\.113\.10/);
      expect((await world().kbctl(['page', '-f', '-'])).stdout).toContain('1 cluster: 1 good.');
      expect(await world().kbctl(['page', '-f', 'none/status.html'])).toMatchObject({
        code: 3,
        stderr: 'error: Cannot write none/status.html (ENOENT): use a file in a writable folder.\n',
      });
    });
  });

  describe('kbctl status after changes', () => {
    const world = worlds.each(passed);

    test('kbctl status shows the last writes of passes, and the writes that an observing pass would make', async () => {
      const status = async () => (await world().kbctl(['status', CLUSTER])).stdout;
      expect(await status()).toMatch(
        /\nLast changes\n(- .*\n|\s+.*\n)*- kubernetes-service, \S+ ago: created service /,
      );
      await world().register({ mode: 'observe' });
      world().standIn.store.remove(NAMESPACES, world().standIn.store.get(NAMESPACES, undefined, 'kube-node-lease'));
      await world().runAllLoops();
      expect(await status()).toContain('\nWould write\n- system-namespaces: would create Namespace kube-node-lease\n');
    });

    test('kbctl get fails and names an item that it cannot read, because a later version wrote the item', async () => {
      const { table } = world();
      const later = { cluster: CLUSTERS, key: 'later-1', schema: 99, value: {} };
      await table.put(later, undefined);
      const { code, stderr } = await world().kbctl(['get', 'findings']);
      const reason = `Cannot read later-1: Item ${CLUSTERS}/later-1 has schema 99`;
      expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    });

    test('if two Services have one address, kbctl status prints how to fix it, and both kbctl status and kbctl get findings fail', async () => {
      for (const name of ['web', 'web-copy']) world().restore(name, '10.0.0.77');
      await world().runAllLoops();
      const shown = await world().kbctl(['status', CLUSTER]);
      expectPrinted(shown, 1, /✗ duplicate: .*10\.0\.0\.77/, 'shop/web-copy');
      const { code, stdout } = await world().kbctl(['get', 'findings', '-o', 'json']);
      const finding = { cluster: CLUSTER, type: 'duplicate', service: 'shop/web-copy', item: '10.0.0.77' };
      expect(code).toBe(1);
      expect(JSON.parse(stdout).items).toContainEqual(expect.objectContaining(finding));
    });
  });
}
