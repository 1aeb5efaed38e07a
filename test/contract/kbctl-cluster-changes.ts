import { expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { updateCluster, withOwner } from '../../lib/table/cluster-registration.ts';
import { listClusters, readCluster } from '../../lib/table/clusters.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
import { documentIn, expectPrinted, failed, type KbctlWorlds, ran } from '../support/kbctl-world.ts';

export function describeClusterChanges(worlds: KbctlWorlds): void {
  const world = worlds.each(async ({ table, register }) => {
    for (const name of ['a', 'b', 'c']) await register({ name, mode: 'observe' });
    await register({ name: 'owned' });
    await updateCluster(table, 'owned', withOwner('a-stack'));
  });
  const cluster = (...words: string[]) => world().kbctl(['cluster', ...words]);
  const registered = (name: string) => readCluster(world().table, name);
  const registeredNames = async () => (await listClusters(world().table)).clusters.map(({ spec }) => spec.name);

  test('kbctl cluster set-mode changes the mode to enforce only if the last pass of every loop succeeded', async () => {
    const { table } = world();
    await world().register({ name: 'd', mode: 'observe' });
    const run = { passId: 'p', startedAtMs: 1, durationMs: 1, mode: 'observe', observed: true } as const;
    const record = { ...run, outcome: 'succeeded', counts: {}, findings: [], failuresInARow: 0, events: {} } as const;
    const save = async (fields: Partial<RunRecord> = {}) => {
      const item = (await readRunRecord(table, 'd', 'cluster-ip-repair'))?.item;
      await writeRunRecord(table, 'd', 'cluster-ip-repair', { ...record, ...fields }, item);
    };
    const refusal = async () => (await cluster('set-mode', 'enforce', 'd')).stderr;
    expect(await refusal()).toContain('d: every loop must succeed in observe first: system-namespaces has not run; ');
    for (const loop of LOOPS) await writeRunRecord(table, 'd', loop, record, undefined);
    await save({ outcome: 'failed', error: { code: 'BadKubeconfig', message: 'no secret d' } });
    expect(await refusal()).toMatch(
      /first: cluster-ip-repair failed \(BadKubeconfig: no secret d\)\. Check with "kbctl doctor d", .*"kbctl run-once cluster-ip-repair d"; --force /,
    );
    await save();
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

  test('kbctl cluster take-over makes the stack the owner, even if another stack owns the cluster', async () => {
    const lines = 'a: owned by new-stack\nowned: owned by new-stack, formerly by a-stack\n';
    expect(await cluster('take-over', 'a', 'owned', '--stack', 'new-stack')).toEqual(ran(0, lines));
    expect((await registered('owned'))?.owner).toEqual({ stack: 'new-stack' });
    expect(await cluster('take-over', 'a', '--stack', 'new-stack')).toEqual(ran(0, 'a: already owned by new-stack\n'));
  });

  test('kbctl cluster close-allocation closes the ranges of a cluster until a pass of the next generation', async () => {
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
  test.each<[string, string[], number, string]>([
    ['set-mode', ['observe', 'a', 'unknown', 'owned'], 3, `error: Cluster "unknown" not found. ${notFound}`],
    ['delete', ['a', 'ownd'], 3, 'error: Cluster "ownd" not found. Did you mean owned?\n  Nothing was changed.\n'],
    ['take-over', ['a', '--stack', 'no stack'], 2, ''],
    ['close-allocation', ['foreign'], 3, 'foreign has "allocator: apiserver": nothing is allocated'],
  ])(
    'kbctl cluster %s with the operands %j is refused, and changes no cluster',
    async (command, words, code, message) => {
      if (command === 'close-allocation') await world().register({ name: 'foreign', allocator: 'apiserver' });
      const before = (await listClusters(world().table)).clusters;
      expect(await cluster(command, ...words)).toEqual(failed(code, message));
      expect((await listClusters(world().table)).clusters).toEqual(before);
    },
  );

  test('kbctl cluster delete refuses the name * and invalid names', async () => {
    for (const name of ['*', '', 'x'.repeat(3000)]) expect((await cluster('delete', name)).code).toBe(3);
    expect(await registeredNames()).toEqual(['a', 'b', 'c', 'owned']);
  });

  test('kbctl cluster delete removes registrations, and prints that the endpoints and the other table items stay', async () => {
    expectPrinted(await cluster('delete', 'a', '--dry-run'), 1, /^a: deleted.*\(dry run\)\n$/);
    const lines = /^a: deleted; its endpoints and its items in the table stay unchanged\nb: deleted; .*\n$/;
    expectPrinted(await cluster('delete', 'a', 'b'), 0, lines);
    expect(await registeredNames()).toEqual(['c', 'owned']);
    const items = [{ name: 'c', changed: true, deleted: true }];
    const document = { kind: 'ChangedClusterList', dryRun: false, items };
    expect(documentIn(await cluster('delete', 'c', '-o', 'json'))).toMatchObject(document);
  });
}
