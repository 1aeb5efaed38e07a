import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { listClusters, readCluster } from '../../lib/table/clusters.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { dropReplyAfter, startFaultProxy } from '../support/fault-proxy.ts';
import type { KbctlProcess, Ran } from '../support/kbctl-process.ts';
import {
  CLUSTER,
  documentIn,
  expectPrinted,
  failed,
  type KbctlWorld,
  type KbctlWorlds,
  ran,
} from '../support/kbctl-world.ts';

export function describeClusterApply(worlds: KbctlWorlds): void {
  describe('kbctl cluster apply', () => {
    const world = worlds.each();

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
      expect(await registeredNames(world())).toEqual(['gone', 'kept']);
    });

    test('kbctl cluster apply creates only the registration, and creates nothing with --dry-run', async () => {
      world().file('cluster.yml', world().spec());
      expect(await apply(world(), '-f', 'cluster.yml', '--dry-run')).toEqual(ran(1, TO_BE_CREATED));
      expect(await registeredNames(world())).toEqual([]);
      const created = `${TO_BE_CREATED}${CLUSTER} created, generation 1\n`;
      expect(await apply(world(), '-f', 'cluster.yml')).toEqual(ran(0, created));
      expect(await world().table.list(CLUSTER, '')).toEqual([]);
      expect(await apply(world(), '-f', 'cluster.yml')).toEqual(ran(0, `${CLUSTER}: unchanged\n`));
    });

    test('kbctl cluster apply shows each field that differs, even for a spec from standard input', async () => {
      await world().register();
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
      await world().register({ mode: 'observe', serviceNodePortRange: '30000-30100' });
      world().file('cluster.yml', world().spec());
      const { clusters, ...document } = documentIn(await apply(world(), '-f', 'cluster.yml', '-o', 'json'));
      const differences = [{ field: 'mode', before: 'observe', after: 'enforce' }, { field: 'serviceNodePortRange' }];
      const written = { action: 'change', outcome: 'written', generation: 2, differences };
      expect(document).toMatchObject({ kind: 'ClusterApply', dryRun: false });
      expect(clusters).toMatchObject([{ name: CLUSTER, file: 'cluster.yml', ...written }]);
    });

    test('kbctl cluster apply --prune removes clusters that are in no file, but more than half of all clusters only with --yes', async () => {
      await world().register();
      await world().register({ name: 'old' });
      world().file('fleet/another.yml', world().spec({ name: 'another' }));
      world().file('fleet/cluster.yml', world().spec());
      world().file('fleet/lost.yml', world().spec({ name: 'lost' }));
      const lines = ['old: to be removed: it is in no file\n', 'old removed; its endpoints stay unchanged\n'];
      expectPrinted(await apply(world(), '-f', 'fleet', '--prune'), 0, ...lines);
      const few = ['-f', 'fleet/another.yml', '--prune'];
      const refused = failed(2, '--prune would remove 2 of 3 registered clusters (lost, prod-eu-1)');
      expect(await apply(world(), ...few)).toEqual(refused);
      expect(await registeredNames(world())).toEqual(['another', 'lost', CLUSTER]);
      expect((await apply(world(), ...few, '--yes')).code).toBe(0);
      expect(await registeredNames(world())).toEqual(['another']);
    });

    test('kbctl cluster apply ends at Ctrl-C after the current cluster, prints the finished steps, and can be run again', async () => {
      const ended = await applyThree(world(), 1, async (running) => {
        running.child.kill('SIGINT');
        await running.untilItPrints(/Ending after a/);
      });
      expectPrinted(ended, 130, /a created, generation 1\n$/);
      expect(ended.stderr).toContain('Not done: b, c. Run the command again.\n');
      expect(await eventsOfThree(world())).toEqual([1, undefined, undefined]);
      expectPrinted(await apply(world(), '-f', 'three'), 0, /^a: unchanged\n[\s\S]*c created, generation 1\n$/);
    });

    test('kbctl cluster apply reports a concurrent change of a cluster, does not overwrite it, and writes the other clusters', async () => {
      for (const name of THREE) await world().register({ name, maxEventsPerPass: 1 });
      const theirs = () => world().register({ name: 'b', maxEventsPerPass: 100 });
      const applied = await applyThree(world(), 2, theirs);
      const lines = ['b not written: b is now registered in generation 2', 'c changed, generation 2\n'];
      expectPrinted(applied, 3, ...lines);
      expect(await eventsOfThree(world())).toEqual([2, 100, 2]);
    });

    test('kbctl cluster apply writes all registrations even if its output is no longer read', async () => {
      await applyThree(world(), 3, async (running) => running.child.stdout?.destroy());
      expect(await eventsOfThree(world())).toEqual([3, 3, 3]);
    });
  });

  describe('kbctl cluster apply with invalid specs', () => {
    const world = worlds.shared(async ({ file, register, spec }) => {
      await register();
      file('cluster.yml', spec());
      file('wrong/two-faults.yaml', TWO_FAULTS);
      for (const name of ['one', 'two']) file(`wrong/${name}.yml`, spec({ name: 'twice' }));
    });

    test('kbctl cluster apply lists every fault of every file even without a table, and changes nothing', async () => {
      const refused = await apply(world(), '-f', 'wrong', 'cluster.yml', '--table', 'no-such-table');
      expect(refused).toEqual(failed(3, 'error: Nothing was changed: correct the faults above, and try again.\n'));
      const faults = 'wrong/two-faults.yaml: 2 faults\n  mode: is "maybe"\n    write one of observe, enforce\n';
      expect(refused.stderr).toContain(faults);
      expect(refused.stderr).toContain('wrong/one.yml and wrong/two.yml are both specs of twice');
      expect(await registeredNames(world())).toEqual([CLUSTER]);
    });

    test('kbctl cluster apply refuses a folder without specs', async () => {
      mkdirSync(join(world().folder, 'empty'));
      expect(await apply(world(), '-f', 'empty', '--prune')).toMatchObject(failed(3, 'No spec in empty'));
      expect(await registeredNames(world())).toEqual([CLUSTER]);
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
}

/** Applies three clusters. After the first write, and before the command gets its reply, runs `meanwhile`. */
async function applyThree(
  world: KbctlWorld,
  maxEventsPerPass: number,
  meanwhile: (running: KbctlProcess) => Promise<unknown>,
): Promise<Ran> {
  for (const name of THREE) world.file(`three/${name}.yml`, world.spec({ name, maxEventsPerPass }));
  const proxy = await startFaultProxy(world.endpoint);
  afterThisTest(proxy.close);
  const env = { AWS_ENDPOINT_URL: proxy.endpoint };
  proxy.plan(
    'PutItem',
    dropReplyAfter(() => meanwhile(running)),
  );
  const running = world.spawn(['cluster', 'apply', '-f', 'three'], { env });
  return running.end();
}

function eventsOfThree({ table }: KbctlWorld) {
  return Promise.all(THREE.map(async (name) => (await readCluster(table, name))?.spec.maxEventsPerPass));
}

function apply({ kbctl }: KbctlWorld, ...words: readonly string[]) {
  return kbctl(['cluster', 'apply', ...words]);
}

async function registeredNames({ table }: KbctlWorld): Promise<readonly string[]> {
  return (await listClusters(table)).clusters.map(({ spec }) => spec.name);
}

const THREE = ['a', 'b', 'c'];
const TO_BE_CREATED = `${CLUSTER}: to be created (mode enforce, allocator table, 10.0.0.0/24, 1 API server)\n`;
const NO_CREDENTIALS = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' };
const TWO_FAULTS = 'name: Bad_Name\nmode: maybe\nkubeconfig: { file: x }\napiServers: [{ address: 10.9.8.7 }]\n';
