import { describe, expect, test } from '@jest/globals';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import type { JudgingPass } from '../../lib/repair/leaks.ts';
import { ipRange, portRange } from '../support/ranges.ts';
import { storedRange } from './repair-cluster.ts';
import { service } from './services.ts';

const WORDS = { item: 'node port', range: 'port range' };
const NOW = 10_000_000;
const INTERVAL = 180_000;
const PASS: JudgingPass = {
  passId: 'this',
  nowMs: NOW,
  intervalMs: INTERVAL,
  fromZero: false,
  controlPlane: 'c',
  mayFree: true,
};

interface Given {
  readonly stored?: Partial<StoredRange>;
  readonly taken?: readonly number[];
  readonly claims?: readonly number[];
  readonly turn?: Partial<JudgingPass>;
  readonly rebuilt?: RangeAllocator<number>;
}

/** Compares a range of ports; bits of `stored` are numbered by the range that it names, 30000-30009 by default. */
function compared({ stored, taken = [], claims = [], turn, rebuilt = portRange('30000-30009') }: Given): Comparison {
  const recorded = portRange(stored?.range ?? '30000-30009');
  const kept = storedRange({ range: recorded.spec, data: fromBits(taken), ...stored });
  recorded.restore(kept);
  const rebuild = startRebuild(kept, recorded, rebuilt);
  for (const port of claims) rebuild.claim(port, service('s'));
  return compareRange(rebuild, WORDS, { ...PASS, ...turn }, 1);
}

const struck = (once: number[], twice: number[], last?: { atMs: number; passId: string }): Partial<StoredRange> => ({
  strikes: { once: fromBits(once), twice: fromBits(twice), ...(last && { last }) },
});
const ago = (ms: number, passId = 'earlier') => ({ atMs: NOW - ms, passId });
const messages = ({ findings }: Comparison) => findings.map(({ message }) => message);
const bits = ({ next }: Comparison) => ({
  taken: [...bitsOf(next.data)],
  once: [...bitsOf(next.strikes.once)],
  twice: [...bitsOf(next.strikes.twice)],
});

describe('an allocated item without a Service', () => {
  test.each([
    {
      strike: 'first',
      stored: {},
      expected: { taken: [2], once: [2], twice: [] },
      found: [
        {
          type: 'mayHaveLeaked',
          message: 'the node port 30002 may have leaked: flagging for later clean up',
          item: '30002',
        },
      ],
    },
    {
      strike: 'second',
      stored: struck([2], [], ago(INTERVAL)),
      expected: { taken: [2], once: [], twice: [2] },
      found: [],
    },
    {
      strike: 'third, which frees it',
      stored: struck([], [2], ago(INTERVAL)),
      expected: { taken: [], once: [], twice: [] },
      found: [{ type: 'leak', message: 'the node port 30002 appears to have leaked: cleaning up', item: '30002' }],
    },
  ])('an allocated item without a Service gets its $strike', ({ stored, expected, found }) => {
    const decided = compared({ taken: [2], stored });
    expect(bits(decided)).toEqual(expected);
    expect(decided.findings).toEqual(found);
    expect(decided.next.strikes.last).toEqual({ atMs: NOW, passId: 'this', controlPlane: 'c' });
    const freed = expected.taken.length === 0;
    expect([...bitsOf(decided.freed)]).toEqual(freed ? [2] : []);
    const [leaks, mayHaveLeaked] = freed ? [1, 0] : [0, 1];
    expect(decided.counts).toMatchObject({ allocated: 1 - leaks, free: 9 + leaks, capacity: 10, leaks, mayHaveLeaked });
  });

  test('an allocated item without a Service keeps its second strike where the list of Services proves too little to free it', () => {
    const stored = struck([3], [2], ago(INTERVAL));
    const decided = compared({ taken: [2, 3], stored, turn: { mayFree: false } });
    expect(bits(decided)).toEqual({ taken: [2, 3], once: [], twice: [2, 3] });
    expect(decided.counts).toMatchObject({ leaks: 0, mayHaveLeaked: 2 });
  });

  test('an allocated item without a Service loses its strikes when a Service has it after all', () => {
    const decided = compared({ taken: [2, 3], claims: [30002], stored: struck([3], [2], ago(INTERVAL)) });
    expect(bits(decided)).toEqual({ taken: [2, 3], once: [], twice: [3] });
    expect(messages(decided)).toEqual([]);
  });
});

describe('a strike', () => {
  const twoThirds = (INTERVAL * 2) / 3;

  test.each([
    { name: 'falls two thirds of an interval after the last', last: ago(twoThirds), falls: true },
    { name: 'does not fall earlier', last: ago(twoThirds - 1), falls: false },
    { name: 'does not fall twice in one pass', last: ago(INTERVAL, 'this'), falls: false },
    { name: 'falls long after the last', last: ago(20 * INTERVAL), falls: true },
    { name: 'does not fall when the last one is a little ahead of the clock', last: ago(-1000), falls: false },
  ])('$name', ({ last, falls }) => {
    const decided = compared({ taken: [2, 5], stored: struck([2], [5], last) });
    expect(bits(decided)).toEqual(
      falls ? { taken: [2], once: [], twice: [2] } : { taken: [2, 5], once: [2], twice: [5] },
    );
    expect(decided.changed).toBe(falls);
    expect(messages(decided)).toEqual(falls ? ['the node port 30005 appears to have leaked: cleaning up'] : []);
  });

  test('an item that is seen for the first time gets no early strike', () => {
    const decided = compared({ taken: [2], stored: struck([], [], ago(1)) });
    expect(messages(decided)).toEqual([]);
    expect(bits(decided)).toEqual({ taken: [2], once: [], twice: [] });
  });

  test('a strike that was dated by a clock far ahead is dated again, and frees nothing', () => {
    const decided = compared({ taken: [5], stored: struck([], [5], ago(-10 * INTERVAL)) });
    expect(bits(decided)).toEqual({ taken: [5], once: [], twice: [5] });
    expect(decided.next.strikes.last).toEqual({ atMs: NOW, passId: 'this' });
    expect(decided.changed).toBe(true);
  });

  test('a strike from before a time of observing does not count', () => {
    const decided = compared({
      taken: [2, 5],
      stored: struck([2], [5], ago(INTERVAL)),
      turn: { fromZero: true },
    });
    expect(bits(decided)).toEqual({ taken: [2, 5], once: [2, 5], twice: [] });
  });

  test('a pass without leaks strikes nothing and saves no strike date', () => {
    const decided = compared({ taken: [2], claims: [30002], stored: struck([], [], ago(INTERVAL)) });
    expect(decided.next.strikes.last).toEqual(ago(INTERVAL));
    expect(decided.changed).toBe(false);
  });
});

describe('a range that was saved for other items', () => {
  const other: Partial<StoredRange> = { range: '29995-30004' };

  test('a range that was saved for other items keeps the items and the strikes of both ranges, by item and not by number', () => {
    const decided = compared({
      stored: { ...other, ...struck([6], [7], ago(INTERVAL)) },
      taken: [6, 7, 8, 9],
      claims: [30003],
    });
    expect(bits(decided)).toEqual({ taken: [1, 3, 4], once: [4], twice: [1] });
    expect([...bitsOf(decided.freed)]).toEqual([2]);
    expect(decided.next.range).toBe('30000-30009');
  });

  test('a range that was saved for other items reports the items that the new range has no room for, and drops them with their strikes', () => {
    const decided = compared({ stored: { ...other, ...struck([], [0], ago(INTERVAL)) }, taken: [0] });
    expect(messages(decided)).toEqual([
      'the node port 29995 may have leaked: flagging for later clean up',
      'the node port 29995 may have leaked, but can not be allocated: provided port is not in the valid range. The range of valid ports is 30000-30009',
    ]);
    expect(bits(decided)).toEqual({ taken: [], once: [], twice: [] });
    expect(decided.counts.leaks).toBe(0);
  });

  test('a range that was saved for other items is saved even if nothing is taken', () => {
    expect(compared({ stored: other }).changed).toBe(true);
  });
});

describe('a comparison', () => {
  test('a comparison drops recorded bits beyond the end of the range', () => {
    const decided = compared({ taken: [2, 10, 4000], claims: [30002] });
    expect(bits(decided).taken).toEqual([2]);
    expect(decided.changed).toBe(true);
  });

  test('a comparison does not change the compared ranges', () => {
    const stored = storedRange({ range: '30000-30009', data: fromBits([2, 3, 4]), ...struck([3], [4], ago(INTERVAL)) });
    const recorded = portRange(stored.range);
    recorded.restore(stored);
    const rebuild = startRebuild(stored, recorded, portRange(stored.range));
    rebuild.claim(30_002, service('s'));
    const compare = () => compareRange(rebuild, WORDS, PASS, 1);
    const { bitOf: _, ...first } = compare();
    expect(compare()).toMatchObject(first);
    expect([recorded.snapshot().data, rebuild.rebuilt.snapshot().data]).toEqual([stored.data, fromBits([2])]);
  });

  test('a range whose items are all allocated or leaking has no free items', () => {
    const decided = compared({ taken: [0, 1], claims: Array.from({ length: 9 }, (_, port) => 30001 + port) });
    expect(decided.findings.at(-1)).toEqual({
      type: 'nothingFree',
      message:
        'nothing is free in the port range 30000-30009, which has room for 10; widen it in the cluster spec to create new Services',
    });
  });

  test.each([
    { name: 'nothing', stored: {}, changed: false },
    { name: 'only padding', stored: { data: Uint8Array.of(0, 0, 4) }, changed: false },
    { name: 'a generation', stored: { generation: 0 }, changed: true },
    { name: 'a bit', stored: { data: Uint8Array.of(0) }, changed: true },
  ])('a comparison reports that $name differs', ({ stored, changed }) => {
    expect(compared({ taken: [2], claims: [30002], stored }).changed).toBe(changed);
  });

  test('a range that was never saved always has something to save', () => {
    const rebuild = startRebuild(undefined, ipRange('10.0.0.0/24'), ipRange('10.0.0.0/24'));
    expect(compareRange(rebuild, WORDS, PASS, 3)).toMatchObject({
      changed: true,
      next: { range: '10.0.0.0/24', data: new Uint8Array(0), generation: 3, allocator: 'table' },
    });
  });
});

describe('an item that admission allocated', () => {
  const unclaimed = [
    { namespace: 'a', name: 'web', reviews: 2, first: [2], later: [3] },
    { namespace: 'a', name: 'api', reviews: 1, first: [4], later: [] },
  ];

  test('an item that admission allocated is remembered until a Service has it or it is freed', () => {
    const stored = { ...struck([], [4], ago(INTERVAL)), unclaimed };
    const decided = compared({ taken: [2, 3, 4], claims: [30_002], stored });
    expect(decided.next.unclaimed).toEqual([{ ...unclaimed[0], first: [], later: [3] }]);
    expect(decided.changed).toBe(true);
  });

  test('an item that admission allocated is forgotten with the range, whose bits are other items', () => {
    const decided = compared({ taken: [2, 3, 4], stored: { unclaimed }, rebuilt: portRange('30000-30011') });
    expect(decided.next).not.toHaveProperty('given');
    expect(bits(decided).taken).toEqual([2, 3, 4]);
  });
});
