import { expect, test } from '@jest/globals';
import type { IPAddressRecord } from '../../lib/cluster/kubernetes-objects.ts';
import type { AddressFault } from '../../lib/repair/address-faults.ts';
import { type AddressMemory, addressMemoryIn, chooseFaults } from '../../lib/repair/address-turns.ts';

const NOW_MS = 1_800_000_000_000;
const SETTLED_AFTER_MS = 65_000;

function record(n: number, createdAtMs = 0): IPAddressRecord {
  const parent = { group: '', resource: 'services', namespace: 'a', name: 'gone' };
  const labels = { family: 'IPv4', managedBy: '' };
  return { name: `item-${n}`, uid: `uid-${n}`, resourceVersion: '1', createdAtMs, ...labels, parent };
}

const leaked = (n: number, createdAtMs = 0): AddressFault => {
  const own = record(n, createdAtMs);
  return { item: own.name, type: 'leakedRecord', correction: 'delete', record: own };
};
const missing = (n: number): AddressFault => ({ item: `missing-${n}`, type: 'notRecorded', correction: 'create' });
const outOfRange = (n: number): AddressFault => ({ item: `out-${n}`, type: 'outOfRange', correction: 'none' });
const many = (count: number, each: (n: number) => AddressFault) => Array.from({ length: count }, (_, n) => each(n));

const at = (nowMs: number, servedAtMs = nowMs): Parameters<typeof chooseFaults>[2] => ({ nowMs, servedAtMs });
/** The clocks of a pass whose replies had no time. */
const untimed = { nowMs: NOW_MS, servedAtMs: undefined };
const seen = (sinceMs: number): AddressMemory => ({ seen: { 'uid-1': sinceMs } });
const items = (faults: readonly AddressFault[]) => faults.map(({ item }) => item);

test.each<[string, AddressMemory, number, ReturnType<typeof at>, boolean]>([
  ['no pass has seen the IPAddress', { seen: {} }, 0, at(NOW_MS), false],
  ['a pass saw another uid of the name', { seen: { 'uid-2': 0 } }, 0, at(NOW_MS), false],
  ['a pass saw the IPAddress a moment too late', seen(NOW_MS - SETTLED_AFTER_MS + 1), 0, at(NOW_MS), false],
  ['a pass saw the IPAddress 65 s ago', seen(NOW_MS - SETTLED_AFTER_MS), 0, at(NOW_MS), true],
  ['the API server dates it a moment too late', seen(0), NOW_MS - SETTLED_AFTER_MS + 1, at(NOW_MS), false],
  ['the API server created it 65 s ago', seen(0), NOW_MS - SETTLED_AFTER_MS, at(NOW_MS), true],
  ['the clock of the API server is behind', seen(0), NOW_MS - 100_000, at(NOW_MS, NOW_MS - 70_000), false],
  ['replies have no time, and the table dates it too late', seen(0), NOW_MS - 64_999, untimed, false],
  ['replies have no time, and the table dates it early', seen(0), 0, untimed, true],
  ['the creation time is not a time', seen(0), Number.NaN, at(NOW_MS), false],
  ['the clock of the table went back', seen(NOW_MS + 1), 0, at(NOW_MS), false],
])('a fault is reported only if its IPAddress predates all running requests: %s', (_, memory, created, clocks, is) => {
  const { listed, unlisted } = chooseFaults([leaked(1, created)], memory, clocks);
  expect(items(listed)).toEqual(is ? ['item-1'] : []);
  expect(unlisted.size).toBe(0);
});

test('a pass saves when an IPAddress was first seen with a fault, and removes this time when the IPAddress has no fault', () => {
  const first = chooseFaults([leaked(1)], { seen: {} }, at(NOW_MS)).memory;
  const second = chooseFaults([leaked(1), leaked(2)], first, at(NOW_MS + 180_000)).memory;
  expect(second).toEqual({ seen: { 'uid-1': NOW_MS, 'uid-2': NOW_MS + 180_000 } });
  expect(chooseFaults([leaked(2)], second, at(NOW_MS + 360_000)).memory.seen).toEqual({ 'uid-2': NOW_MS + 180_000 });
});

/** Runs passes until no correction is left. Corrections of the items that match `refused` are refused. */
function passesOver(faults: readonly AddressFault[], refused = /^$/) {
  let left = faults;
  let memory: AddressMemory = { seen: {} };
  const corrected = new Set<string>();
  let largestMemory = 0;
  for (let pass = 1; pass <= 100; pass += 1) {
    const chosen = chooseFaults(left, memory, at(NOW_MS + pass * 180_000));
    ({ memory } = chosen);
    largestMemory = Math.max(largestMemory, Object.keys(memory.seen).length);
    const corrections = chosen.listed.filter(({ correction }) => correction !== 'none');
    const created = corrections.filter(({ correction }) => correction === 'create').length;
    expect(corrections.length - created + created / 5).toBeLessThanOrEqual(200);
    for (const { item } of corrections) if (!refused.test(item)) corrected.add(item);
    left = left.filter(({ item }) => !corrected.has(item));
    if (!left.some(({ item, correction }) => correction !== 'none' && !refused.test(item))) {
      return { passes: pass, largestMemory };
    }
  }
  throw new Error('a fault was never corrected');
}

test('a correction is made at once although there are a thousand faults that cannot be corrected', () => {
  const faults = [...many(1_000, outOfRange), missing(1)];
  const { listed, unlisted } = chooseFaults(faults, { seen: {} }, at(NOW_MS));
  expect(items(listed)).toContain('missing-1');
  expect(listed).toHaveLength(201);
  expect(unlisted).toEqual(new Map([['outOfRange', 800]]));
});

test.each([
  ['missing IPAddresses', many(1_000, missing), /^$/, 1],
  ['leaked IPAddresses, which each pass saw once before', many(1_000, leaked), /^$/, 6],
  ['missing and leaked ones, 600 of them refused', [...many(600, missing), ...many(600, leaked)], /^missing/, 12],
  ['leaked IPAddresses, of which 600 are refused', many(1_000, leaked), /^item-[0-5]?\d?\d$/, 12],
])('corrections take turns, so that each is tried within a few passes: %s', (_, faults, refused, most) => {
  const { passes, largestMemory } = passesOver(faults, refused);
  expect(passes).toBeLessThanOrEqual(most);
  expect(largestMemory).toBeLessThanOrEqual(200);
});

test('faults that passes do not correct are reported in each pass', () => {
  const faults = many(150, leaked);
  let { memory } = chooseFaults(faults, { seen: {} }, at(NOW_MS));
  for (let pass = 1; pass <= 3; pass += 1) {
    const chosen = chooseFaults(faults, memory, at(NOW_MS + pass * 180_000));
    expect(chosen.listed).toHaveLength(150);
    ({ memory } = chosen);
  }
});

const STATES = [undefined, { addresses: { seen: { a: 'b' } } }];
test.each(STATES)('a state that an earlier version saved, or that does not parse, counts as empty: %j', (state) => {
  expect(addressMemoryIn(state)).toEqual({ seen: {} });
});
