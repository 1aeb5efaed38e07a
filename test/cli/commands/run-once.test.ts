import { expect, test } from '@jest/globals';
import { fromBits, union } from '../../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../../lib/spec/spec-ranges.ts';
import { updateCluster, withOwner, withPause } from '../../../lib/table/cluster-registration.ts';
import { readPauseOfAll } from '../../../lib/table/clusters.ts';
import { readRange, saveRange } from '../../../lib/table/ranges.ts';
import { readRunRecord } from '../../../lib/table/run-records.ts';
import { SERVICES } from '../../../local/stand-in/resources.ts';
import { found } from '../../support/found.ts';
import { CLUSTER, documentIn, expectPrinted, failed, kbctlWorlds, passed, ran } from '../../support/kbctl-world.ts';

const KEY = RANGE_KEYS.primary;
const MINUTE_MS = 60_000;
const QUARTER_MS = 16 * MINUTE_MS;
const ADDRESS = '203.0.113.10';
const world = kbctlWorlds().each(passed);
const repair = (...words: string[]) => world().kbctl(['run-once', 'cluster-ip-repair', ...words]);
const snapshot = async () => found(await readRange(world().table, CLUSTER, KEY));
const everything = async () => [
  await world().table.list(CLUSTER, ''),
  world().standIn.store.list(SERVICES, undefined, () => true),
];
/** Allocates 10.0.0.10 without a Service, as an unfinished creation of a Service does. */
const leak = async () => {
  const { stored, item } = await snapshot();
  await saveRange(world().table, CLUSTER, KEY, { ...stored, data: union(stored.data, fromBits([9])) }, item);
};

test('kbctl run-once finds nothing to do in a healthy cluster, and records the pass', async () => {
  const before = await readRunRecord(world().table, CLUSTER, 'cluster-ip-repair');
  const stdout = `${CLUSTER} cluster-ip-repair: one pass, 1 Service seen\n  nothing to do\n`;
  expect(await repair(CLUSTER)).toMatchObject({ code: 0, stdout });
  const after = await readRunRecord(world().table, CLUSTER, 'cluster-ip-repair');
  expect(after?.record.startedAtMs).toBeGreaterThan(before?.record.startedAtMs ?? 0);
});

test('kbctl run-once --dry-run prints the changes of a pass, and writes nothing', async () => {
  await leak();
  const before = await everything();
  const changes = 'dry run, nothing was written, 1 Service seen\n  would save ranges/';
  const finding = 'mayHaveLeaked: the cluster IP 10.0.0.10 may have leaked: flagging for later clean up';
  expectPrinted(await repair(CLUSTER, '--dry-run'), 1, changes, finding, /resolution: \S/);
  expect(await everything()).toEqual(before);
});

test('kbctl run-once gives a leak one strike, and prints that the third strike frees it', async () => {
  await leak();
  expect((await repair(CLUSTER)).stdout).toContain('Left: 1 allocated without a Service; the third pass in a row');
  expect(documentIn(await repair(CLUSTER, '-o', 'json'))).toMatchObject({
    kind: 'Pass',
    outcome: 'succeeded',
    wrote: true,
    startedAt: expect.stringMatching(/Z$/),
    counts: { mayHaveLeaked: 1 },
  });
});

test('kbctl run-once frees a leak at its third strike, allocates an unallocated address of a Service, and prints both repairs', async () => {
  await leak();
  const { stored, item } = await snapshot();
  const strikes = { once: new Uint8Array(0), twice: fromBits([9]) };
  await saveRange(world().table, CLUSTER, KEY, { ...stored, strikes }, item);
  world().restore('web', '10.0.0.77');
  const freed = 'Freed:\n    leak: the cluster IP 10.0.0.10 appears to have leaked: cleaning up\n';
  const found = /Found:\n {4}repair: .*10\.0\.0\.77.* is not allocated; repairing\n/;
  expectPrinted(await repair(CLUSTER), 1, freed, found);
});

test('kbctl run-once lists all findings of a pass, and other commands count the findings that the run record omits', async () => {
  world().restore('web', '10.0.0.77');
  await repair(CLUSTER);
  for (let copy = 1; copy <= 25; copy++) world().restore(`copy-${copy}`, '10.0.0.77');
  const { stdout } = await repair(CLUSTER);
  expect(stdout.match(/ {4}duplicate: /g)).toHaveLength(25);
  const all = `kbctl run-once cluster-ip-repair ${CLUSTER} --dry-run`;
  const lines = ['Findings of the last passes (20 of 25)', `5 more: ${all}`];
  expectPrinted(await world().kbctl(['status', CLUSTER]), 1, ...lines);
  const got = await world().kbctl(['get', 'findings', CLUSTER, '-o', 'json']);
  expect(JSON.parse(got.stdout)).toMatchObject({ total: 25, items: { length: 20 } });
  expect(got.stderr).toContain(`20 of 25 findings. List all of a loop with "${all}".\n`);
});

test('kbctl run-once reports that the API server does not answer, and records nothing', async () => {
  const before = await everything();
  const file = world().unreachableCluster();
  const refused = failed(4, 'error: unable to refresh the service IP block: ');
  expect(await repair(CLUSTER, '--kubeconfig', file)).toEqual(refused);
  expect(await everything()).toEqual(before);

  // A pass of system-namespaces continues after a failed namespace, so it has a report although every request failed.
  const record = () => world().table.get(CLUSTER, 'runs/system-namespaces');
  const recorded = await record();
  const words = ['run-once', 'system-namespaces', CLUSTER, '--kubeconfig', file];
  expect(await world().kbctl(words)).toMatchObject({ code: 4 });
  expect(await record()).toEqual(recorded);
});

test.each([
  [['run-once', 'cluster-ip-repair', CLUSTER], 'Interrupted before anything was decided: nothing was changed.\n'],
  [['doctor', CLUSTER], ''],
])('kbctl %j ends at Ctrl-C while the API server is silent', async (words, message) => {
  expect(await world().interruptWhileSilent(words)).toMatchObject(failed(130, message));
});

test('kbctl run-once runs no pass while the cluster is paused, unless an option forces the pass', async () => {
  const pause = { untilMs: Date.now() + 3_600_000, reason: 'upgrade', by: 'anna' };
  await updateCluster(world().table, CLUSTER, withPause(pause));
  const refusal = /is paused until \S+ by anna: upgrade\. Nothing was done\. .*--even-if-paused/;
  expect(await repair(CLUSTER)).toEqual({ code: 3, stdout: '', stderr: expect.stringMatching(refusal) });
  expect(await repair(CLUSTER, '--even-if-paused')).toMatchObject({ code: 0 });
  expect(await repair(CLUSTER, '--dry-run')).toMatchObject({ code: 0 });
});

test('kbctl run-once runs for the stack that owns the cluster, and prints the name of the stack', async () => {
  await updateCluster(world().table, CLUSTER, withOwner('kbc-prod'));
  world().restore('api', '10.0.0.78');
  const { stderr, stdout } = await repair(CLUSTER);
  expect(stderr).toContain(`The pass runs for stack kbc-prod, which owns ${CLUSTER}.\n`);
  expect(stdout).toContain('saved ranges/serviceips: ');
});

const stored = () => world().table.list(CLUSTER, '');

test.each([
  { aheadMs: QUARTER_MS, words: ['run-once', 'cluster-ip-repair', CLUSTER] },
  { aheadMs: -QUARTER_MS, words: ['allocate', 'ip', CLUSTER] },
  { aheadMs: -QUARTER_MS, words: ['release', 'ip', CLUSTER, '10.0.0.9', '--yes'] },
  { aheadMs: -QUARTER_MS, words: ['deregister', CLUSTER, ADDRESS, '--last-one'] },
  { aheadMs: QUARTER_MS, words: ['deregister', CLUSTER, ADDRESS, '--undo'] },
  { aheadMs: QUARTER_MS, words: ['heartbeat', CLUSTER, '--address', ADDRESS, '--once'] },
])('kbctl refuses to write if the clock of the host is wrong: $words', async ({ aheadMs, words }) => {
  const before = await stored();
  const how = aheadMs > 0 ? 'ahead of' : 'behind';
  const refusal = new RegExp(`The clock of this host is at least \\d+\\.\\d s ${how} the table's`);
  expect(await world().kbctl(words, { aheadMs })).toEqual(ran(3, '', expect.stringMatching(refusal)));
  expect(await stored()).toEqual(before);
});

test('kbctl pause uses the clock of the table if the clock of the host is wrong', async () => {
  const beforeMs = Date.now();
  const words = ['pause', '--all', '--for', '1h', '--reason', 'x'];
  const { code, stderr } = await world().kbctl(words, { aheadMs: -QUARTER_MS });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^warning: The clock of this host/) });
  const untilMs = (await readPauseOfAll(world().table))?.untilMs ?? 0;
  expect(untilMs - beforeMs).toBeGreaterThan(50 * MINUTE_MS);
});

test('kbctl shows ages by the clock of the table', async () => {
  const { stdout } = await world().kbctl(['get', 'leases', CLUSTER], { aheadMs: QUARTER_MS });
  expect(stdout).not.toMatch(/\dm ago/);
});

test('kbctl doctor fails if the clock of the host is wrong', async () => {
  const checked = await world().kbctl(['doctor', CLUSTER], { aheadMs: -QUARTER_MS });
  expectPrinted(checked, 1, "s behind the table's or more");
});
