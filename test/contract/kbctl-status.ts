import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { NAMESPACES } from '../../local/stand-in/resources.ts';
import { CLUSTER, documentIn, expectPrinted, type KbctlWorld, ran } from '../support/kbctl-world.ts';

export function describeStatus(world: () => KbctlWorld): void {
  test('kbctl status prints how to register a cluster if none is registered', async () => {
    const advice = ran(0, '', expect.stringContaining('Register one with "kbctl cluster apply -f FILE"'));
    expect(await world().kbctl(['status'])).toEqual(advice);
  });

  test('kbctl status shows a cluster that has had no pass yet', async () => {
    await world().register();
    const shown = await world().kbctl(['status', CLUSTER]);
    expectPrinted(shown, 0, /203\.0\.113\.10 +never seen/, /cluster-ip-repair +never ran/);
  });

  describe('kbctl status after the first passes of a cluster', () => {
    beforeAll(async () => {
      await world().runAllLoops();
    });

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

    test('kbctl status without a name prints a line for each cluster', async () => {
      expectPrinted(await world().kbctl(['status']), 0, /^NAME +HEALTH .*\nprod-eu-1 +good +enforce +1\/1 /);
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

    test('the completion of a shell offers the clusters of the table that the command line names', async () => {
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

    test('kbctl status prints the reason of a pause without control characters', async () => {
      const reason = 'x\u001b]52;c;cm0=\u0007\u202e\nerror: all is lost';
      await world().kbctl(['pause', CLUSTER, '--for', '1h', '--reason', reason]);
      for (const words of [['status', CLUSTER], ['status'], ['cluster', 'get'], ['status', CLUSTER, '-o', 'yaml']]) {
        const { stdout, stderr } = await world().kbctl(words);
        expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]|\p{Cf}|^error:/mu);
      }
      const shown = await world().kbctl(['status', CLUSTER, '-o', 'json']);
      expect(documentIn(shown)).toMatchObject({ paused: { reason } });
      await world().kbctl(['resume', CLUSTER]);
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

  test.each([
    ['leases', /^ADDRESS .*\n203\.0\.113\.10 +valid/],
    ['ranges', /^RANGE .*\n10\.0\.0\.0\/24 +cluster IPs/],
    ['runs', /^LOOP .*\nsystem-namespaces +good/],
  ])('kbctl get lists %s', async (what, pattern) => {
    expectPrinted(await world().kbctl(['get', what, CLUSTER]), 0, pattern);
  });

  test('kbctl get -o yaml without a cluster name prints the leases of all clusters as one list', async () => {
    const { stdout } = await world().kbctl(['get', 'leases', '-o', 'yaml']);
    expect(stdout).toMatch(/^apiVersion: kbctl\/v1\nkind: LeaseList\ntotal: 1\nitems:\n +- cluster: prod-eu-1\n/);
  });

  test('kbctl get prints no findings for a healthy cluster', async () => {
    const stderr = 'The last passes have no findings.\n';
    expect(await world().kbctl(['get', 'findings', CLUSTER])).toEqual({ code: 0, stdout: '', stderr });
  });

  test('kbctl status shows the last writes of passes, and the writes that an observing pass would make', async () => {
    const status = async () => (await world().kbctl(['status', CLUSTER])).stdout;
    expect(await status()).toMatch(/\nLast changes\n(- .*\n|\s+.*\n)*- kubernetes-service, \S+ ago: created service /);
    await world().register({ mode: 'observe' });
    world().standIn.store.remove(NAMESPACES, world().standIn.store.get(NAMESPACES, undefined, 'kube-node-lease'));
    await world().runAllLoops();
    expect(await status()).toContain('\nWould write\n- system-namespaces: would create Namespace kube-node-lease\n');
    await world().register();
    await world().runAllLoops();
  });

  test('kbctl get fails and names the items that it cannot read, because a later version wrote them', async () => {
    const { table } = world();
    const runs = { cluster: CLUSTER, key: 'runs/cluster-ip-repair', schema: 99, value: {} };
    await table.put(runs, await table.get(CLUSTER, runs.key));
    await table.put({ ...runs, cluster: CLUSTERS, key: 'later-1' }, undefined);
    const own = `Cannot read ${CLUSTER}: Item ${CLUSTER}/${runs.key} has schema 99`;
    const other = `Cannot read later-1: Item ${CLUSTERS}/later-1 has schema 99`;
    const ofOne = { code: 1, stderr: expect.stringContaining(own) };
    expect(await world().kbctl(['get', 'findings', CLUSTER])).toMatchObject(ofOne);
    const { code, stderr } = await world().kbctl(['get', 'findings']);
    expect([code, stderr]).toEqual([1, expect.stringContaining(other)]);
    for (const [cluster, key] of [
      [CLUSTER, runs.key],
      [CLUSTERS, 'later-1'],
    ] as const) {
      const item = await table.get(cluster, key);
      if (item !== undefined) await world().removeItem(item);
    }
    await world().runAllLoops();
  });

  describe('two Services have one address', () => {
    beforeAll(async () => {
      for (const name of ['web', 'web-copy']) world().restore(name, '10.0.0.77');
      await world().runAllLoops();
    });

    test('kbctl status reports that two Services have one address, prints how to fix it, and fails', async () => {
      const shown = await world().kbctl(['status', CLUSTER]);
      expectPrinted(shown, 1, /✗ duplicate: .*10\.0\.0\.77/, 'shop/web-copy');
    });

    test('kbctl get findings names the Service and the address, and exits with 1', async () => {
      const { code, stdout } = await world().kbctl(['get', 'findings', '-o', 'json']);
      const finding = { cluster: CLUSTER, type: 'duplicate', service: 'shop/web-copy', item: '10.0.0.77' };
      expect(code).toBe(1);
      expect(JSON.parse(stdout).items).toContainEqual(expect.objectContaining(finding));
    });
  });
}
