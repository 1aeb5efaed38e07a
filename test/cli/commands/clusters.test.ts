import { mkdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { LOOPS, type Loop } from '../../../lib/spec/cluster-spec.ts';
import { updateCluster, withOwner } from '../../../lib/table/cluster-registration.ts';
import { listClusters, readCluster, readPauseOfAll } from '../../../lib/table/clusters.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../../lib/table/run-records.ts';
import { dropReplyAfter } from '../../support/fault-proxy.ts';
import type { KbctlProcess, Ran } from '../../support/kbctl-process.ts';
import {
  CLUSTER,
  documentIn,
  expectPrinted,
  failed,
  type KbctlWorld,
  kbctlWorlds,
  ran,
} from '../../support/kbctl-world.ts';
import { aRunRecord } from '../../support/run-records.ts';

const HOUR_MS = 3_600_000;
const THREE = ['a', 'b', 'c'];
const TO_BE_CREATED = `${CLUSTER}: to be created (mode enforce, allocator table, 10.0.0.0/24, 1 API server)\n`;
const NO_CREDENTIALS = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' };
const TWO_FAULTS = 'name: Bad_Name\nmode: maybe\nkubeconfig: { file: x }\napiServers: [{ address: 10.9.8.7 }]\n';

const worlds = kbctlWorlds();

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

  test('kbctl cluster apply --prune removes clusters that are in no file, but needs --yes to remove more than half of all clusters', async () => {
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

  test('kbctl cluster apply reports a concurrent change of a cluster, does not overwrite this change, and writes the other clusters', async () => {
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

describe('commands that change no cluster', () => {
  const world = worlds.shared(async ({ file, register, spec }) => {
    await register();
    file('cluster.yml', spec());
    file('wrong/two-faults.yaml', TWO_FAULTS);
    for (const name of ['one', 'two']) file(`wrong/${name}.yml`, spec({ name: 'twice' }));
  });

  test('kbctl cluster apply lists every fault of every file even without a table, and changes nothing', async () => {
    const refused = await apply(world(), '-f', 'wrong', 'cluster.yml', '--table', 'no-such-table');
    expect(refused).toEqual(failed(3, 'error: Nothing was changed: correct the faults above, and try again.\n'));
    expect(refused.stderr).toContain('wrong/two-faults.yaml: 2 faults\n');
    expect(refused.stderr).toContain('\n  mode: is "maybe"\n    write one of observe, enforce\n');
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

  test('if the table does not answer, the error of kbctl cluster get states what to do', async () => {
    const env = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' };
    expect(await world().kbctl(['cluster', 'get'], { env })).toMatchObject(failed(5, 'try again'));
  });
});

describe('changes and pauses of clusters', () => {
  const world = worlds.each(async ({ table, register }) => {
    for (const name of ['a', 'b', 'c']) await register({ name, mode: 'observe' });
    await register({ name: 'owned' });
    await updateCluster(table, 'owned', withOwner('a-stack'));
  });
  const kbctl = (...words: string[]) => world().kbctl(words);
  const cluster = (...words: string[]) => kbctl('cluster', ...words);
  const registered = (name: string) => readCluster(world().table, name);
  const pausedOf = async (name: string) => (await registered(name))?.paused;

  test('kbctl cluster set-mode changes the mode to enforce only if the last pass of every loop succeeded', async () => {
    const { table } = world();
    await world().register({ name: 'd', mode: 'observe' });
    const save = async (loop: Loop, fields: Partial<RunRecord> = {}) => {
      const item = (await readRunRecord(table, 'd', loop))?.item;
      await writeRunRecord(table, 'd', loop, aRunRecord(1, { mode: 'observe', observed: true, ...fields }), item);
    };
    const refusal = async () => (await cluster('set-mode', 'enforce', 'd')).stderr;
    expect(await refusal()).toContain('d: every loop must succeed in observe first: system-namespaces has not run; ');
    for (const loop of LOOPS) await save(loop);
    await save('cluster-ip-repair', { outcome: 'failed', error: { code: 'BadKubeconfig', message: 'no secret d' } });
    expect(await refusal()).toMatch(
      /first: cluster-ip-repair failed \(BadKubeconfig: no secret d\)\. Check with "kbctl doctor d", .*"kbctl run-once cluster-ip-repair d"; --force /,
    );
    await save('cluster-ip-repair');
    expect(await cluster('set-mode', 'enforce', 'd')).toMatchObject({ code: 0 });
  });

  test('kbctl cluster set-mode writes a new generation only if the mode changes, and writes nothing with --dry-run', async () => {
    const tried = ran(1, 'a: mode observe -> enforce, generation 2 (dry run)\n');
    expect(await cluster('set-mode', 'enforce', 'a', '--dry-run', '--force')).toEqual(tried);
    expect(await registered('a')).toMatchObject({ generation: 1, spec: { mode: 'observe' } });
    const stdout = 'a: mode observe -> enforce, generation 2\nb: mode observe -> enforce, generation 2\n';
    expect(await cluster('set-mode', 'enforce', 'a', 'b', 'a', '--force')).toMatchObject({ code: 0, stdout });
    expect(await cluster('set-mode', 'enforce', 'a')).toEqual(ran(0, 'a: mode is already enforce\n'));
    expect(await registered('a')).toMatchObject({ generation: 2, spec: { mode: 'enforce' } });
  });

  test('kbctl cluster take-over makes a stack the owner of a cluster, even if another stack owns the cluster', async () => {
    const lines = 'a: owned by new-stack\nowned: owned by new-stack, formerly by a-stack\n';
    expect(await cluster('take-over', 'a', 'owned', '--stack', 'new-stack')).toEqual(ran(0, lines));
    expect((await registered('owned'))?.owner).toEqual({ stack: 'new-stack' });
    expect(await cluster('take-over', 'a', '--stack', 'new-stack')).toEqual(ran(0, 'a: already owned by new-stack\n'));
  });

  test('kbctl cluster close-allocation closes the ranges of a cluster until a pass of the next generation has saved them', async () => {
    await world().register({ name: 'closing' });
    const { generation = 0 } = (await registered('closing')) ?? {};
    const words = `closing: closed until a pass of generation ${generation + 1} has saved its ranges`;
    expect(await cluster('close-allocation', 'closing', '--dry-run')).toEqual(ran(1, `${words} (dry run)\n`));
    expect(await registered('closing')).toMatchObject({ generation });
    expect(await cluster('close-allocation', 'closing')).toMatchObject(ran(0, `${words}\n`));
    const after = generation + 1;
    expect(await registered('closing')).toMatchObject({ generation: after, rangesGeneration: after });
  });

  const notFound = 'Registered clusters: a, b, c, owned.\n  Nothing was changed.\n';
  test.each<[string[], number, string]>([
    [['cluster', 'set-mode', 'observe', 'a', 'unknown'], 3, `error: Cluster "unknown" not found. ${notFound}`],
    [['cluster', 'delete', 'a', 'ownd'], 3, 'error: Cluster "ownd" not found. Did you mean owned?\n  Nothing was ch'],
    [['cluster', 'take-over', 'a', '--stack', 'no stack'], 2, ''],
    [['cluster', 'close-allocation', 'foreign'], 3, 'foreign has "allocator: apiserver": nothing is allocated'],
    [['pause', 'b', 'd', '--reason', 'x'], 3, 'Cluster "d" not found'],
    [['pause', 'a', '--reason', ' '], 2, '--reason is empty'],
    [['pause', '--reason', 'x', '--table', 'no-such-table'], 2, 'Name the clusters, or use --all.'],
    [['pause', 'a', '--all', '--reason', 'x'], 2, 'Use either --all or the names of clusters.'],
    [['pause', 'a', '--for', '400d', '--reason', 'x'], 2, '--for is at most 366d'],
  ])('kbctl %j is refused, and changes no cluster', async (words, code, message) => {
    if (words.includes('foreign')) await world().register({ name: 'foreign', allocator: 'apiserver' });
    const before = (await listClusters(world().table)).clusters;
    expect(await kbctl(...words)).toEqual(failed(code, message));
    expect((await listClusters(world().table)).clusters).toEqual(before);
  });

  test('kbctl cluster delete refuses the name * and invalid names', async () => {
    for (const name of ['*', '', 'x'.repeat(3000)]) expect((await cluster('delete', name)).code).toBe(3);
    expect(await registeredNames(world())).toEqual(['a', 'b', 'c', 'owned']);
  });

  test('kbctl cluster delete removes registrations, and prints that the endpoints and the other table items stay', async () => {
    expectPrinted(await cluster('delete', 'a', '--dry-run'), 1, /^a: deleted.*\(dry run\)\n$/);
    const lines = /^a: deleted; its endpoints and its items in the table stay unchanged\nb: deleted; .*\n$/;
    expectPrinted(await cluster('delete', 'a', 'b'), 0, lines);
    expect(await registeredNames(world())).toEqual(['c', 'owned']);
    const items = [{ name: 'c', changed: true, deleted: true }];
    const document = { kind: 'ChangedClusterList', dryRun: false, items };
    expect(documentIn(await cluster('delete', 'c', '-o', 'json'))).toMatchObject(document);
  });

  test('kbctl pause pauses a cluster for a day by default, in the name of the user', async () => {
    const beforeMs = Date.now();
    const { username } = userInfo();
    const result = new RegExp(`^a: paused until \\d{4}-.*Z by ${username}: an upgrade\\n$`);
    expect(await kbctl('pause', 'a', '--reason', 'an upgrade')).toEqual(ran(0, expect.stringMatching(result)));
    const pause = await pausedOf('a');
    expect(pause).toMatchObject({ reason: 'an upgrade', by: username });
    expect(pause?.untilMs).toBeGreaterThanOrEqual(beforeMs + 24 * HOUR_MS);
  });

  test('kbctl pause pauses several clusters for the time of --for, in the name of --by', async () => {
    const words = ['--for', '2h', '--reason', 'more', '--by', 'the night shift'];
    expect(await kbctl('pause', 'a', 'b', ...words)).toMatchObject({ code: 0 });
    for (const name of ['a', 'b']) expect(await pausedOf(name)).toMatchObject({ by: 'the night shift' });
    expect((await pausedOf('a'))?.untilMs).toBeLessThanOrEqual(Date.now() + 2 * HOUR_MS);
    expect((await cluster('get')).stdout).toMatch(/\na .* more\nb .* more\nc .*\nowned .*\n$/);
  });

  test('kbctl pause --dry-run prints the pause, and pauses nothing', async () => {
    expectPrinted(await kbctl('pause', 'b', '--reason', 'x', '--dry-run'), 1, /: x \(dry run\)\n$/);
    expect(await pausedOf('b')).toBeUndefined();
  });

  test('kbctl resume resumes a paused cluster, and reports a cluster that was not paused', async () => {
    await kbctl('pause', 'a', '--reason', 'x');
    expect(await kbctl('resume', 'a', 'b')).toEqual(ran(0, 'a: resumed\nb: was not paused\n'));
    expect(await pausedOf('a')).toBeUndefined();
  });

  test('kbctl pause --all pauses all clusters, and commands that resume or show one cluster print this pause', async () => {
    const reason = 'a move';
    const document = documentIn(await kbctl('pause', '--all', '--for', '30m', '--reason', reason, '-o', 'json'));
    expect(document).toMatchObject({ kind: 'PauseOfAll', changed: true, paused: { reason } });
    expect(await readPauseOfAll(world().table)).toMatchObject({ reason });
    const note = /^All clusters are paused until .*: a move\. Use "kbctl resume --all" to resume them\.\n$/;
    expect((await kbctl('resume', 'a')).stderr).toMatch(note);
    expect((await cluster('get')).stderr).toMatch(note);
  });

  test('kbctl resume --all ends the pause of all clusters; if no such pause exists, it reports that the clusters were not paused', async () => {
    await kbctl('pause', '--all', '--reason', 'x');
    expect((await kbctl('resume', '--all')).stdout).toMatch(/^all clusters: resumed/);
    expect(await readPauseOfAll(world().table)).toBeUndefined();
    expectPrinted(await kbctl('resume', '--all'), 0, 'were not paused');
  });
});

/** Applies three clusters. After the first write, and before the command gets its reply, runs `meanwhile`. */
async function applyThree(
  world: KbctlWorld,
  maxEventsPerPass: number,
  meanwhile: (running: KbctlProcess) => Promise<unknown>,
): Promise<Ran> {
  for (const name of THREE) world.file(`three/${name}.yml`, world.spec({ name, maxEventsPerPass }));
  const { env, plan } = await world.startProxy();
  const dropped = dropReplyAfter(() => meanwhile(running));
  plan('PutItem', dropped);
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
