import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { rangeAllocationToJson, rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { addressesOf, portsOf } from '../support/kbctl-ranges.ts';
import { CLUSTER, type KbctlWorld } from '../support/kbctl-world.ts';

const HOUR_MS = 3_600_000;

/** `10.0.0.<number>` for each. */
const addresses = (...numbers: readonly number[]) => ({
  metadata: {},
  range: '10.0.0.0/24',
  data: fromBits(numbers.map((number) => number - 1)),
});

/** Export, import and holds of a cluster at work. */
export function describeRanges(world: () => KbctlWorld): void {
  const inFolder = (name: string) => join(world().folder, name);
  const exportRanges = (...words: readonly string[]) => world().kbctl(['export', 'ranges', CLUSTER, ...words]);
  const importRanges = (...words: readonly string[]) => world().kbctl(['import', 'ranges', CLUSTER, ...words]);

  /** Passes have saved, and something is held; once. */
  const untilMs = Date.now() + HOUR_MS;
  let held: Promise<void> | undefined;
  const hold = () => {
    held ??= holdSome(world(), untilMs);
    return held;
  };

  beforeAll(async () => {
    await registerCluster(world().table, specIn(world().spec()));
  });

  describe('kbctl export ranges, before any pass', () => {
    test('is refused, and names the option that forces it', async () => {
      const { code, stdout, stderr } = await exportRanges();
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toMatch(/^error: ranges\/serviceips is not known to agree with the cluster: .*--force/);
    });

    test('has nothing to write even by force', async () => {
      expect(await exportRanges('--force', '--as', 'etcd', '--range', 'serviceips')).toMatchObject({
        code: 3,
        stderr: expect.stringContaining('No pass has saved serviceips yet'),
      });
    });
  });

  describe('kbctl get holds', () => {
    test('reports that nothing is held', async () => {
      expect(await world().kbctl(['get', 'holds'])).toEqual({ code: 0, stdout: '', stderr: 'There are no holds.\n' });
    });

    test('lists what is held, for whom and until when', async () => {
      await hold();
      const { stdout } = await world().kbctl(['get', 'holds', '-o', 'json']);
      const until = new Date(untilMs).toISOString();
      expect(JSON.parse(stdout)).toMatchObject({
        kind: 'HoldList',
        items: [
          { cluster: CLUSTER, key: 'ranges/serviceips', items: ['10.0.0.9', '10.0.0.10'], owner: 'ci', until },
          { key: 'ranges/servicenodeports', items: ['30080'], owner: 'balancer' },
        ],
      });
    });
  });

  describe('kbctl export ranges', () => {
    beforeAll(hold);

    test('prints all ranges with their holds and their age', async () => {
      const { code, stdout, stderr } = await exportRanges();
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        kind: 'ClusterRanges',
        cluster: CLUSTER,
        ranges: [
          { key: 'ranges/serviceips', used: 3, holds: [{ owner: 'ci' }] },
          { key: 'ranges/servicenodeports', used: 1, holds: [{ owner: 'balancer' }] },
        ],
      });
      expect(stderr).toMatch(/^serviceips 10\.0\.0\.0\/24: 3 of 254 allocated, 2 held, compared \d+s ago\n/);
    });

    test('writes what etcd keeps, to the byte, into a file', async () => {
      const words = ['--range', 'serviceips', '--as', 'etcd', '-f', inFolder('serviceips')];
      const { code, stdout, stderr } = await exportRanges(...words);
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
      expect(readFileSync(inFolder('serviceips'))).toEqual(Buffer.from(rangeAllocationToStorage(addresses(1, 9, 10))));
      expect(stderr).toMatch(/^warning: 2 items of ranges\/serviceips are held/);
    });

    test('prints the object of Kubernetes', async () => {
      const { stdout } = await exportRanges('--range', 'serviceips', '--as', 'range-allocation');
      expect(stdout).toBe(rangeAllocationToJson(addresses(1, 9, 10)));
    });

    test.each([
      [
        'a range that the cluster does not have',
        ['--range', 'secondaryserviceips'],
        3,
        'has no ranges/secondaryservice',
      ],
      ['one object for several ranges', ['--as', 'range-allocation'], 2, 'choose it with --range'],
      ['YAML', ['-o', 'yaml'], 2, 'choose a format with --as'],
      ['a folder that is not there', ['-f', 'no-such-folder/file'], 3, 'Cannot write'],
    ])('refuses %s', async (_, words, code, message) => {
      expect(await exportRanges(...words)).toMatchObject({ code, stderr: expect.stringContaining(message) });
    });
  });

  describe('kbctl import ranges', () => {
    beforeAll(async () => {
      await hold();
      world().file('from-etcd', written());
    });

    const written = () => rangeAllocationToStorage(addresses(1, 9, 77, 78, 79));

    test('shows what it would do in a dry run, and fails with the difference', async () => {
      expect(await importRanges('-f', 'from-etcd', '--dry-run')).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('  to allocate       3  10.0.0.77, 10.0.0.78, 10.0.0.79\n'),
        stderr: expect.stringMatching(/^warning: Kubernetes 1\.34 and later no longer write/),
      });
    });

    test('requires --yes without a terminal, and writes nothing without it', async () => {
      const before = await readCluster(world().table, CLUSTER);
      expect(await importRanges('-f', 'from-etcd')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('use --yes to confirm. Nothing was changed.'),
      });
      expect(await readCluster(world().table, CLUSTER)).toEqual(before);
    });

    test.each([
      ['of another range', () => rangeAllocationToJson({ ...addresses(1), range: '10.0.1.0/24' }), 'is of 10.0.1.0/24'],
      ['that is far too large', () => new Uint8Array(3 * 1024 * 1024), 'is larger than 2 MB'],
    ])('refuses a file %s', async (_, content, message) => {
      const stderr = expect.stringContaining(message);
      const file = world().file('bad', content());
      expect(await importRanges('-f', file, '--yes')).toMatchObject({ code: 3, stdout: '', stderr });
    });

    test('refuses a file that is not there', async () => {
      const stderr = expect.stringContaining('Cannot read nowhere (ENOENT)');
      expect(await importRanges('-f', 'nowhere')).toMatchObject({ code: 3, stderr });
    });

    test('imports, and prints that allocation is closed and how it opens', async () => {
      const { code, stdout, stderr } = await importRanges('-f', 'from-etcd', '--yes');
      expect(code).toBe(0);
      expect(stdout).toContain('to allocate       3');
      expect(stderr).toMatch(/Nothing can be allocated in prod-eu-1 until .* saved generation 3\./);
      expect(stderr).toContain(
        '  kbctl run-once cluster-ip-repair prod-eu-1\n  kbctl run-once node-port-repair prod-eu-1\n',
      );
      expect(await (await addressesOf(world().table)).allocateNext()).toMatchObject({ code: 'NotReady' });
      expect(await exportRanges()).toMatchObject({ code: 3, stderr: expect.stringContaining('imported into') });
    });

    test('finds nothing to import the second time', async () => {
      expect(await importRanges('-f', 'from-etcd')).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('Nothing to import: the table contains everything in the file.'),
      });
    });

    test('is open again after a pass of both loops, with what was imported', async () => {
      await world().runAllLoops();
      const open = await addressesOf(world().table);
      expect(await open.allocateOne('10.0.0.78')).toMatchObject({ code: 'AlreadyAllocated' });
      expect(await open.allocateOne('10.0.0.80')).toBeUndefined();
    });

    test('counts what a pass suspected as leaked as allocated again', async () => {
      const stdin = (await exportRanges()).stdout;
      const words = ['import', 'ranges', CLUSTER, '-f', '-', '-o', 'json', '--dry-run'];
      const again = await world().kbctl(words, { stdin });
      expect(again.code).toBe(1);
      expect(JSON.parse(again.stdout)).toMatchObject({
        kind: 'RangeImport',
        changes: true,
        written: [],
        ranges: [
          { key: 'ranges/serviceips', toSet: [], onlyHere: [], strikesCleared: expect.arrayContaining(['10.0.0.77']) },
          { key: 'ranges/servicenodeports', toSet: [] },
        ],
      });
    });
  });
}

async function holdSome(world: KbctlWorld, untilMs: number): Promise<void> {
  await world.runAllLoops();
  const ci = { owner: 'ci', untilMs, takenUpBy: 'any', requestId: 'request-1' } as const;
  await (await addressesOf(world.table)).allocate([{ value: '10.0.0.9' }, { value: '10.0.0.10' }], { hold: ci });
  const forGood = { owner: 'balancer', takenUpBy: 'owner' } as const;
  await (await portsOf(world.table)).allocate([{ value: 30080 }], { hold: forGood });
}
