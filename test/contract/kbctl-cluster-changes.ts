import { beforeAll, describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { specJsonSchema } from '../../lib/spec/spec-json-schema.ts';
import { registerCluster, unregisterCluster } from '../../lib/table/cluster-registration.ts';
import { listClusters, readCluster } from '../../lib/table/clusters.ts';
import { registerPackaged } from '../../lib/table/packaged-registration.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import type { KbctlWorld } from '../support/kbctl-world.ts';

const PACKAGER = { stack: 'a-stack', startedAtMs: 1, nowMs: 1 };

/** `cluster set-mode`, `take-over`, `close-allocation`, `delete` and `schema`. */
export function describeClusterChanges(world: () => KbctlWorld): void {
  const cluster = (...words: string[]) => world().kbctl(['cluster', ...words]);
  const registered = (name: string) => readCluster(world().table, name);
  const registeredNames = async () => (await listClusters(world().table)).clusters.map(({ spec }) => spec.name);

  beforeAll(async () => {
    const { table, spec } = world();
    for (const name of ['a', 'b', 'c', 'd']) await registerCluster(table, specIn(spec({ name, mode: 'observe' })));
    await registerPackaged(table, specIn(spec({ name: 'packaged' })), PACKAGER);
  });

  describe('kbctl cluster set-mode', () => {
    test('requires that the last pass of every loop succeeded before it enforces', async () => {
      const { table } = world();
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
      await unregisterCluster(table, 'd');
    });

    test('prints with --dry-run what would change, and changes nothing', async () => {
      expect(await cluster('set-mode', 'enforce', 'a', '--dry-run', '--force')).toMatchObject({
        code: 1,
        stdout: 'a: mode observe -> enforce, generation 2 (dry run)\n',
      });
      expect(await registered('a')).toMatchObject({ generation: 1, spec: { mode: 'observe' } });
    });

    test('writes a new generation, once', async () => {
      const { code, stdout } = await cluster('set-mode', 'enforce', 'a', 'b', 'a', '--force');
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: 'a: mode observe -> enforce, generation 2\nb: mode observe -> enforce, generation 2\n',
      });
      expect(await cluster('set-mode', 'enforce', 'a')).toEqual({
        code: 0,
        stdout: 'a: mode is already enforce\n',
        stderr: '',
      });
      expect(await registered('a')).toMatchObject({ generation: 2, spec: { mode: 'enforce' } });
    });

    test('reads all of them first, and reports everything that is wrong', async () => {
      expect(await cluster('set-mode', 'observe', 'a', 'nobody', 'packaged')).toEqual({
        code: 3,
        stdout: '',
        stderr: [
          'Cluster "nobody" not found. Registered clusters: a, b, c, packaged.',
          'error: packaged is the cluster.yml of stack a-stack: set mode: observe there and deploy.',
          '  Nothing was changed.',
          '',
        ].join('\n'),
      });
      expect(await registered('a')).toMatchObject({ generation: 2 });
    });
  });

  describe('kbctl cluster take-over', () => {
    test('makes the stack the owner, also of what another one packages', async () => {
      expect(await cluster('take-over', 'a', 'packaged', '--stack', 'new-stack')).toEqual({
        code: 0,
        stdout: [
          'a: owned by new-stack',
          'packaged: owned by new-stack, formerly by a-stack; its spec is no longer that of a package',
          '',
        ].join('\n'),
        stderr: '',
      });
      expect((await registered('packaged'))?.owner).toEqual({ stack: 'new-stack' });
      expect(await cluster('take-over', 'a', '--stack', 'new-stack')).toMatchObject({
        code: 0,
        stdout: 'a: already owned by new-stack\n',
      });
    });

    test('refuses what is no name of a stack', async () => {
      expect(await cluster('take-over', 'a', '--stack', 'no stack')).toMatchObject({ code: 2, stdout: '' });
    });
  });

  describe('kbctl cluster close-allocation', () => {
    test('closes the ranges of clusters that allocate here, in a later generation', async () => {
      const { table, spec } = world();
      await registerCluster(table, specIn(spec({ name: 'closing' })));
      const { generation = 0 } = (await registered('closing')) ?? {};
      const words = `closing: closed until a pass of generation ${generation + 1} has saved its ranges`;
      expect(await cluster('close-allocation', 'closing', '--dry-run')).toMatchObject({
        code: 1,
        stdout: `${words} (dry run)\n`,
      });
      expect(await registered('closing')).toMatchObject({ generation });
      expect(await cluster('close-allocation', 'closing')).toMatchObject({ code: 0, stdout: `${words}\n`, stderr: '' });
      const after = generation + 1;
      expect(await registered('closing')).toMatchObject({ generation: after, rangesGeneration: after });
      expect(await unregisterCluster(table, 'closing')).toBe(true);
    });

    test('refuses a cluster whose API servers allocate', async () => {
      const { table, spec } = world();
      await registerCluster(table, specIn(spec({ name: 'foreign', allocator: 'apiserver' })));
      const stderr = expect.stringContaining('foreign has "allocator: apiserver": nothing is allocated');
      expect(await cluster('close-allocation', 'foreign')).toMatchObject({ code: 3, stderr });
      expect(await unregisterCluster(table, 'foreign')).toBe(true);
    });
  });

  describe('kbctl cluster delete', () => {
    beforeAll(async () => {
      await registerPackaged(world().table, specIn(world().spec({ name: 'of-a-package' })), PACKAGER);
    });

    test('deletes none when one of them is not there or a stack packages it', async () => {
      expect(await cluster('delete', 'a', 'packagd')).toMatchObject({
        code: 3,
        stderr: 'error: Cluster "packagd" not found. Did you mean packaged?\n  Nothing was changed.\n',
      });
      const stderr = expect.stringContaining('of-a-package is the cluster.yml of stack a-stack: remove it there');
      expect(await cluster('delete', 'of-a-package')).toMatchObject({ code: 3, stderr });
      expect(await registeredNames()).toContain('a');
    });

    test('deletes all with --all and a confirmation, except what a stack packages', async () => {
      const asked = await cluster('delete', '--all');
      expect(asked).toMatchObject({ code: 2, stdout: '' });
      expect(asked.stderr).toMatch(/Delete all 4 clusters \(a, b, c, packaged\)\? .*use --yes/);
      expect(await cluster('delete', '--all', 'a')).toMatchObject({ code: 2 });
      const { code, stdout } = await cluster('delete', '--all', '--dry-run');
      expect({ code, names: stdout.match(/^[^:]+/gm) }).toEqual({ code: 1, names: ['a', 'b', 'c', 'packaged'] });
      expect(await registeredNames()).toEqual(['a', 'b', 'c', 'of-a-package', 'packaged']);
    });

    test('accepts neither a star for all of them nor an invalid name', async () => {
      for (const name of ['*', '', 'x'.repeat(3000)]) expect((await cluster('delete', name)).code).toBe(3);
      expect(await registeredNames()).toEqual(['a', 'b', 'c', 'of-a-package', 'packaged']);
    });

    test('ends the passes, and prints what stays', async () => {
      expect(await cluster('delete', 'a', '--dry-run')).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/^a: deleted.*\(dry run\)\n$/),
      });
      const { code, stdout } = await cluster('delete', 'a', 'b');
      expect(code).toBe(0);
      expect(stdout).toMatch(/^a: deleted; its endpoints and its items in the table stay unchanged\nb: deleted; .*\n$/);
      expect(await registeredNames()).toEqual(['c', 'of-a-package', 'packaged']);
    });

    test('is one document for programs', async () => {
      const { stdout } = await cluster('delete', 'c', '-o', 'json');
      const items = [{ name: 'c', changed: true, deleted: true }];
      expect(JSON.parse(stdout)).toMatchObject({ kind: 'ChangedClusterList', dryRun: false, items });
    });
  });

  describe('kbctl cluster schema', () => {
    test('prints the JSON Schema', async () => {
      const { code, stdout } = await cluster('schema');
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(specJsonSchema())));
    });
  });
}
