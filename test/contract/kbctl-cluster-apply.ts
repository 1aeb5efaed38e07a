import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { registerCluster, unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import { listClusters, readCluster } from '../../lib/table/clusters.ts';
import { aClusterSpec, specIn } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { dropReplyAfter, startFaultProxy } from '../support/fault-proxy.ts';
import type { KbctlProcess, Ran } from '../support/kbctl-process.ts';
import { CLUSTER, documentIn, expectPrinted, failed, type KbctlWorld, ran } from '../support/kbctl-world.ts';

export function describeClusterApply(world: () => KbctlWorld): void {
  const apply = (...words: string[]) => world().kbctl(['cluster', 'apply', ...words]);
  const registeredNames = async () => (await listClusters(world().table)).clusters.map(({ spec }) => spec.name);

  test('kbctl cluster diff shows only the clusters that would change, and counts all clusters', async () => {
    await world().register({ name: 'kept' });
    await world().register({ name: 'gone' });
    world().file('both/kept.yml', world().spec({ name: 'kept' }));
    world().file('both/prod.yml', world().spec());
    const diff = ['cluster', 'diff', '-f', 'both', '--prune'];
    const removed = 'gone: to be removed: it is in no file\n';
    const count = '1 to be created, 1 to be removed, 1 unchanged\n';
    expect(await world().kbctl(diff)).toEqual(ran(1, TO_BE_CREATED + removed + count));
    const { code, stdout } = await world().kbctl([...diff, '-o', 'json']);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 1, kind: 'ClusterApply', dryRun: true });
    for (const name of ['kept', 'gone']) await updateCluster(world().table, name, unregistered, {});
    expect(await registeredNames()).toEqual([]);
  });

  test('kbctl cluster apply creates only the registration, and with --dry-run nothing', async () => {
    world().file('cluster.yml', world().spec());
    expect(await apply('-f', 'cluster.yml', '--dry-run')).toEqual(ran(1, TO_BE_CREATED));
    expect(await registeredNames()).toEqual([]);
    const created = `${TO_BE_CREATED}${CLUSTER} created, generation 1\n`;
    expect(await apply('-f', 'cluster.yml')).toEqual(ran(0, created));
    expect(await world().table.list(CLUSTER, '')).toEqual([]);
    expect(await apply('-f', 'cluster.yml')).toEqual(ran(0, `${CLUSTER}: unchanged\n`));
  });

  test('kbctl cluster apply shows each field that differs, even for a spec from standard input', async () => {
    const stdin = world().spec({ mode: 'observe', serviceNodePortRange: '30000-30100' });
    const changed = [
      `${CLUSTER}: to be changed`,
      '    mode: enforce -> observe',
      '    serviceNodePortRange: 30000-32767 -> 30000-30100',
      `${CLUSTER} changed, generation 2`,
      '',
    ];
    expect(await world().kbctl(['cluster', 'apply', '-f', '-'], { stdin })).toEqual(ran(0, changed.join('\n')));
  });

  test('kbctl cluster apply -o json prints one document', async () => {
    const { clusters, ...document } = documentIn(await apply('-f', 'cluster.yml', '-o', 'json'));
    const differences = [{ field: 'mode', before: 'observe', after: 'enforce' }, { field: 'serviceNodePortRange' }];
    const written = { action: 'change', outcome: 'written', generation: 3, differences };
    expect(document).toMatchObject({ kind: 'ClusterApply', dryRun: false });
    expect(clusters).toMatchObject([{ name: CLUSTER, file: 'cluster.yml', ...written }]);
  });

  describe('kbctl cluster apply with invalid specs', () => {
    beforeAll(() => {
      world().file(
        'wrong/two-faults.yaml',
        'name: Bad_Name\nmode: maybe\nkubeconfig: { file: x }\napiServers: [{ address: 10.9.8.7 }]\n',
      );
      for (const name of ['one', 'two']) world().file(`wrong/${name}.yml`, world().spec({ name: 'twice' }));
    });

    test('kbctl cluster apply lists every fault of every file even without a table, and changes nothing', async () => {
      const refused = await apply('-f', 'wrong', 'cluster.yml', '--table', 'no-such-table');
      expect(refused).toEqual(failed(3, 'error: Nothing was changed: correct the faults above, and try again.\n'));
      const faults = 'wrong/two-faults.yaml: 2 faults\n  mode: is "maybe"\n    write one of observe, enforce\n';
      expect(refused.stderr).toContain(faults);
      expect(refused.stderr).toContain('wrong/one.yml and wrong/two.yml are both specs of twice');
      expect(await registeredNames()).toEqual([CLUSTER]);
    });

    test('kbctl cluster apply refuses a folder without specs', async () => {
      mkdirSync(join(world().folder, 'empty'));
      expect(await apply('-f', 'empty', '--prune')).toMatchObject(failed(3, 'No spec in empty'));
      expect(await registeredNames()).toEqual([CLUSTER]);
    });

    test.each([
      ['the table', 5, {}, ['--table', 'no-such-table'], '"no-such-table" was not found'],
      ['credentials', 3, NO_CREDENTIALS, [], 'There are no valid AWS credentials'],
      ['the region', 3, { AWS_REGION: '' }, [], 'No valid AWS region is set'],
    ])('kbctl cluster apply reports that %s is missing', async (_, code, env, words, reason) => {
      const options = { env: { ...env, HOME: world().folder } };
      const applied = await world().kbctl(['cluster', 'apply', '-f', 'cluster.yml', ...words], options);
      expect(applied).toEqual(failed(code, reason));
    });
  });

  describe('kbctl cluster apply --prune', () => {
    beforeAll(async () => {
      await registerCluster(world().table, aClusterSpec({ name: 'old' }));
      world().file('fleet/another.yml', world().spec({ name: 'another' }));
      world().file('fleet/cluster.yml', world().spec());
      world().file('fleet/lost.yml', world().spec({ name: 'lost' }));
    });

    test('kbctl cluster apply --prune removes clusters that are in no file, but more than half of all clusters only with --yes', async () => {
      const lines = ['old: to be removed: it is in no file\n', 'old removed; its endpoints stay unchanged\n'];
      expectPrinted(await apply('-f', 'fleet', '--prune'), 0, ...lines);
      const few = ['-f', 'fleet/another.yml', '--prune'];
      const refused = failed(2, '--prune would remove 2 of 3 registered clusters (lost, prod-eu-1)');
      expect(await apply(...few)).toEqual(refused);
      expect(await registeredNames()).toEqual(['another', 'lost', CLUSTER]);
      expect((await apply(...few, '--yes')).code).toBe(0);
      expect(await registeredNames()).toEqual(['another']);
    });
  });

  describe('kbctl cluster apply, when it is interrupted', () => {
    let generation = 0;

    /** Applies three clusters. After the first write, and before the command gets its reply, runs `meanwhile`. */
    const applyThree = async (meanwhile: (running: KbctlProcess) => Promise<unknown>): Promise<Ran> => {
      generation++;
      for (const name of ['a', 'b', 'c']) {
        world().file(`three/${name}.yml`, world().spec({ name, maxEventsPerPass: generation }));
      }
      const proxy = await startFaultProxy(world().endpoint);
      afterThisTest(proxy.close);
      const env = { AWS_ENDPOINT_URL: proxy.endpoint };
      proxy.plan(
        'PutItem',
        dropReplyAfter(() => meanwhile(running)),
      );
      const running = world().spawn(['cluster', 'apply', '-f', 'three'], { env });
      return running.end();
    };
    const generations = () =>
      Promise.all(['a', 'b', 'c'].map(async (name) => (await readCluster(world().table, name))?.spec.maxEventsPerPass));

    test('kbctl cluster apply ends at Ctrl-C after the current cluster, prints the finished steps, and can be run again', async () => {
      const ended = await applyThree(async (running) => {
        running.child.kill('SIGINT');
        await running.untilItPrints(/Ending after a/);
      });
      expectPrinted(ended, 130, /a created, generation 1\n$/);
      expect(ended.stderr).toContain('Not done: b, c. Run the command again.\n');
      expect(await generations()).toEqual([1, undefined, undefined]);
      expectPrinted(await apply('-f', 'three'), 0, /^a: unchanged\n[\s\S]*c created, generation 1\n$/);
    });

    test('kbctl cluster apply reports a concurrent change of a cluster, does not overwrite it, and writes the other clusters', async () => {
      const theirs = specIn(world().spec({ name: 'b', maxEventsPerPass: 100 }));
      const applied = await applyThree(() => registerCluster(world().table, theirs));
      const lines = ['b not written: b is now registered in generation 2', 'c changed, generation 2\n'];
      expectPrinted(applied, 3, ...lines);
      expect(await generations()).toEqual([2, 100, 2]);
    });

    test('kbctl cluster apply writes all registrations even if its output is no longer read', async () => {
      await applyThree(async (running) => running.child.stdout?.destroy());
      expect(await generations()).toEqual([3, 3, 3]);
    });
  });
}

const TO_BE_CREATED = `${CLUSTER}: to be created (mode enforce, allocator table, 10.0.0.0/24, 1 API server)\n`;
const NO_CREDENTIALS = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' };
