import { expect, test } from '@jest/globals';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { Hold, HoldTerms } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import type { JudgingPass } from '../../lib/repair/leaks.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { HOLD_END_MARGIN_MS, made, storedRange } from '../support/ranges.ts';
import { service } from './services.ts';

const { primary, nodePorts } = RANGE_KEYS;
const WORDS = { item: 'node port', range: 'port range' };
const NOW = 10_000_000;
const INTERVAL = 180_000;
const CLOCK = { nowMs: NOW, intervalMs: INTERVAL };
const PASS: JudgingPass = { passId: 'this', ...CLOCK, fromZero: false, controlPlane: 'c', mayFree: true };

interface Given {
  /** The stored range. Bit 0 is the first port of its range, which is 30000-30009 by default. */
  readonly stored?: Partial<StoredRange>;
  readonly taken?: readonly number[];
  /** Holds. Their items are also allocated. */
  readonly holds?: readonly Hold[];
  /** The claimed ports, each with the Service that claims the port if the test needs a certain Service. */
  readonly claims?: readonly (number | readonly [port: number, by: ServiceClaim])[];
  readonly turn?: Partial<JudgingPass>;
  /** The range of the spec. */
  readonly range?: string;
}

const RANGE = '30000-30009';

/** Compares a range of ports with the claims. */
function compared({ stored, taken = [], holds = [], claims = [], turn, range = RANGE }: Given): Comparison {
  const held = holds.flatMap(({ items }) => items.map((item) => Number(item) - 30_000));
  const kept = storedRange({ range: RANGE, data: fromBits([...taken, ...held]), holds, ...stored });
  const rebuild = made(startRebuild(nodePorts, range, kept));
  for (const claim of claims) {
    const [port, by] = typeof claim === 'number' ? [claim, service('s')] : claim;
    rebuild.claim(String(port), by);
  }
  return compareRange(rebuild, WORDS, { ...PASS, ...turn }, 1);
}

const struck = (once: number[], twice: number[], last?: { atMs: number; passId: string }): Partial<StoredRange> => ({
  strikes: { once: fromBits(once), twice: fromBits(twice), ...(last && { last }) },
});
const ago = (ms: number, passId = 'earlier') => ({ atMs: NOW - ms, passId });
const EARLIER = ago(INTERVAL);
const messages = ({ findings }: Comparison) => findings.map(({ message }) => message);
const bits = ({ next }: Comparison) => ({
  taken: [...bitsOf(next.data)],
  once: [...bitsOf(next.strikes.once)],
  twice: [...bitsOf(next.strikes.twice)],
});

test.each([
  { strike: '2nd', stored: struck([2], [], EARLIER), after: { taken: [2], once: [], twice: [2] }, leaks: 0 },
  { strike: '3rd and last', stored: struck([], [2], EARLIER), after: { taken: [], once: [], twice: [] }, leaks: 1 },
])('an allocated item without a Service gets the $strike strike', ({ stored, after, leaks }) => {
  const decided = compared({ taken: [2], stored });
  expect(bits(decided)).toEqual(after);
  const leak = { type: 'leak', message: 'the node port 30002 appears to have leaked: cleaning up', item: '30002' };
  expect(decided.findings).toEqual(leaks > 0 ? [leak] : []);
  expect(decided.next.strikes.last).toEqual({ atMs: NOW, passId: 'this', controlPlane: 'c' });
  expect([...bitsOf(decided.freed)]).toEqual(leaks > 0 ? [2] : []);
  const counts = { allocated: 1 - leaks, free: 9 + leaks, capacity: 10, leaks, mayHaveLeaked: 1 - leaks };
  expect(decided.counts).toMatchObject(counts);
});

test('an item with two strikes keeps them if the pass is not allowed to free items', () => {
  const stored = struck([3], [2], ago(INTERVAL));
  const decided = compared({ taken: [2, 3], stored, turn: { mayFree: false } });
  expect(bits(decided)).toEqual({ taken: [2, 3], once: [], twice: [2, 3] });
  expect(decided.counts).toMatchObject({ leaks: 0, mayHaveLeaked: 2 });
});

const twoThirds = (INTERVAL * 2) / 3;

test.each([
  { name: 'is recorded two thirds of an interval after the last strikes', last: ago(twoThirds), falls: true },
  { name: 'is not recorded within two thirds of an interval of the last', last: ago(twoThirds - 1), falls: false },
  { name: 'is not recorded twice by one pass', last: ago(INTERVAL, 'this'), falls: false },
  { name: 'is not recorded if the last strikes are dated slightly in the future', last: ago(-1000), falls: false },
])('a strike $name', ({ last, falls }) => {
  const decided = compared({ taken: [2, 5], stored: struck([2], [5], last) });
  const after = falls ? { taken: [2], once: [], twice: [2] } : { taken: [2, 5], once: [2], twice: [5] };
  expect(bits(decided)).toEqual(after);
  expect(decided.changed).toBe(falls);
  expect(messages(decided)).toEqual(falls ? ['the node port 30005 appears to have leaked: cleaning up'] : []);
});

test('if the date of the last strikes is far in the future, the present date replaces that date, and no item is freed', () => {
  const decided = compared({ taken: [5], stored: struck([], [5], ago(-10 * INTERVAL)) });
  expect(bits(decided)).toEqual({ taken: [5], once: [], twice: [5] });
  expect(decided.next.strikes.last).toEqual({ atMs: NOW, passId: 'this' });
  expect(decided.changed).toBe(true);
});

const other: Partial<StoredRange> = { range: '29995-30004' };

test('items within the new bounds of a range stay allocated and keep their strikes, although their bits change', () => {
  const stored = { ...other, ...struck([6], [7], ago(INTERVAL)) };
  const decided = compared({ stored, taken: [6, 7, 8, 9], claims: [30003] });
  expect(bits(decided)).toEqual({ taken: [1, 3, 4], once: [4], twice: [1] });
  expect([...bitsOf(decided.freed)]).toEqual([2]);
  expect(decided.next.range).toBe('30000-30009');
});

test('items outside the new bounds of a range are reported and removed, with their strikes', () => {
  const decided = compared({ stored: { ...other, ...struck([], [0], ago(INTERVAL)) }, taken: [0] });
  expect(messages(decided)).toEqual([
    'the node port 29995 may have leaked: flagging for later clean up',
    'the node port 29995 may have leaked, but can not be allocated: provided port is not in the valid range. The range of valid ports is 30000-30009',
  ]);
  expect(bits(decided)).toEqual({ taken: [], once: [], twice: [] });
  expect(decided.counts.leaks).toBe(0);
});

test('a range whose items are all allocated or leaking is reported as full', () => {
  const decided = compared({ taken: [0, 1], claims: Array.from({ length: 9 }, (_, port) => 30001 + port) });
  const message =
    'nothing is free in the port range 30000-30009, which has room for 10; widen it in the cluster spec to create new Services';
  expect(decided.findings.at(-1)).toEqual({ type: 'nothingFree', message });
});

test.each([
  { name: 'no difference', stored: {}, changed: false },
  { name: 'another generation', stored: { generation: 0 }, changed: true },
  { name: 'another bit', stored: { data: Uint8Array.of(0) }, changed: true },
])('a comparison reports a change only if the bits or the generation differ: $name', ({ stored, changed }) => {
  expect(compared({ taken: [2], claims: [30002], stored }).changed).toBe(changed);
});

/** The latest end of a hold that has expired by every clock. */
const OVER = NOW - HOLD_END_MARGIN_MS;
const ANY: HoldTerms = { owner: 'team-a', takenUpBy: 'any', untilMs: NOW + 1, requestId: 'r1' };
const OWNERS: HoldTerms = { ...ANY, takenUpBy: 'owner' };

const shown = ({ next, findings, counts }: Comparison) => ({
  taken: [...bitsOf(next.data)],
  struck: [...bitsOf(next.strikes.once), ...bitsOf(next.strikes.twice)],
  holds: next.holds,
  findings: findings.map(({ type }) => type),
  held: counts.held,
  holdsEnded: counts.holdsEnded,
});

test('a held item without a Service is freed without strikes when its hold has expired, and any other leak gets a strike', () => {
  const left = { ...ANY, items: ['30005'] };
  const holds = [{ ...ANY, untilMs: OVER, items: ['30002', '30004'] }, left];
  const decided = compared({ holds, stored: { data: fromBits([2, 4, 5, 6]) } });
  const kept = { taken: [5, 6], struck: [6], holds: [left], findings: ['mayHaveLeaked'] };
  expect(shown(decided)).toEqual({ ...kept, held: 1, holdsEnded: 2 });
  expect(decided.changed).toBe(true);
});

test('a claim by a Service with the label of the owner ends the hold of the claimed item, and other held items stay held', () => {
  const holds = [{ ...OWNERS, items: ['30002', '30005'] }];
  const decided = compared({ holds, claims: [[30_002, service('s', { holdOwner: 'team-a' })]] });
  const kept = [{ ...OWNERS, items: ['30005'] }];
  expect(shown(decided)).toEqual({ taken: [2, 5], struck: [], holds: kept, findings: [], held: 1, holdsEnded: 0 });
});

test("if a Service has a held item, but not the label of the hold's owner, a finding reports it, and the item stays held", () => {
  const holds = [{ ...OWNERS, items: ['30002'] }];
  const decided = compared({ holds, claims: [[30_002, service('s')]] });
  const message =
    'the node port 30002 for service a/s is held by team-a, and the Service does not have its label. Label it "kube-bootstrap-controller/hold-owner: team-a", and the next pass ends the hold; or recreate the Service';
  expect(decided.findings).toEqual([{ type: 'heldByAnother', message, item: '30002', service: 'a/s' }]);
  expect(shown(decided)).toMatchObject({ taken: [2], holds, held: 1 });
  expect([...bitsOf(decided.proved)]).toEqual([2]);
});

test('a held item within the new bounds of a range stays held, and a held item outside them is reported and removed', () => {
  const ended = { ...ANY, untilMs: OVER, items: ['30003', '30009'] };
  const holds = [{ ...ANY, items: ['30002', '30008'] }, ended];
  const decided = compared({ holds, range: '30005-30014' });
  const kept = { taken: [3], struck: [], holds: [{ ...ANY, items: ['30008'] }] };
  expect(shown(decided)).toEqual({ ...kept, findings: ['other'], held: 1, holdsEnded: 1 });
  expect(decided.findings[0]?.message).toBe(
    'the node port 30002 is held by team-a and is not in 30005-30014, the range that the cluster spec has now: its hold ends',
  );
});

test('the comparison keeps a valid address in its hold, and removes an invalid address from that hold', () => {
  const holds = [{ ...ANY, items: ['fd00::a', 'nonsense'] }];
  const stored = storedRange({ range: 'fd00::/120', data: fromBits([9]), holds });
  const rebuild = made(startRebuild(primary, stored.range, stored));
  const { next, bitOf } = compareRange(rebuild, WORDS, PASS, 1);
  expect(next.holds).toEqual([{ ...ANY, items: ['fd00::a'] }]);
  expect([bitOf('fd00::a'), bitOf('FD00:0::a'), bitOf('fd00::'), bitOf('x')]).toEqual([9, 9, undefined, undefined]);
  expect(rebuild.recorded.itemOf('fd00:0::A')).toBe('fd00::a');
});
