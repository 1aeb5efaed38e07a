import { describe, expect, test } from '@jest/globals';
import {
  afterWrite,
  type ContestState,
  contestStateFrom,
  judgeContest,
  lastManager,
} from '../../lib/endpoints/contested-writes.ts';

const INTERVAL_MS = 10_000;
const MINUTES_MS = 60_000;
const NOW_MS = 1_000_000;

interface Tick {
  readonly atMs: number;
  readonly differs: boolean;
  readonly wanted?: string;
  readonly urgent?: boolean;
  readonly version?: string;
}

/** Each tick writes unless it is told to withhold; a write leaves version `own`, the other leaves `other`. */
function run(ticks: readonly Tick[], before: ContestState = {}) {
  let state = before;
  const told = ticks.map(({ atMs, differs, wanted = 'a', urgent = false, version = differs ? 'other' : 'own' }) => {
    const facts = { wanted, differs, urgent, versions: [version], nowMs: atMs, intervalMs: INTERVAL_MS };
    const verdict = judgeContest(state, facts);
    const writes = differs && !verdict.withhold;
    state = writes ? afterWrite(verdict, { ...facts, versions: ['own'] }) : verdict.state;
    return `${writes ? 'writes' : 'waits'}${verdict.twoOwners ? ', two owners' : ''}`;
  });
  return { told, state };
}

/** Somebody puts back whatever is written, from one tick to the next. */
function contested(count: number): Tick[] {
  return Array.from({ length: count }, (_, index) => ({ atMs: index * INTERVAL_MS, differs: true }));
}

/** What a pass leaves that wanted `a` and found it. */
const SETTLED: ContestState = { wanted: 'a' };

function quietTicks(count: number): Tick[] {
  return Array.from({ length: count }, (_, index) => ({ atMs: (index + 1) * INTERVAL_MS, differs: false }));
}

describe('two owners of the endpoints', () => {
  test('what another writer changed is corrected at once', () => {
    expect(run([{ atMs: 0, differs: true }], SETTLED).told).toEqual(['writes']);
  });

  test('what another writer changed right after we created it is corrected at once, too', () => {
    const { told } = run([
      { atMs: 0, differs: true },
      { atMs: 10_000, differs: true },
    ]);
    expect(told).toEqual(['writes', 'writes']);
  });

  test('what another writer changed right after an address was added or removed is corrected at once', () => {
    const { told } = run(
      [
        { atMs: 0, differs: true, wanted: 'b' },
        { atMs: 10_000, differs: true, wanted: 'b' },
      ],
      SETTLED,
    );
    expect(told).toEqual(['writes', 'writes']);
  });

  test.each([
    { name: 'at the next tick', quiet: 0, owners: true },
    { name: 'two ticks later', quiet: 1, owners: true },
    { name: 'three ticks later', quiet: 2, owners: false },
  ])('what is put back $name: two owners is $owners', ({ quiet, owners }) => {
    const last = { atMs: (quiet + 1) * INTERVAL_MS, differs: true };
    const { told } = run([{ atMs: 0, differs: true }, ...quietTicks(quiet), last], SETTLED);
    expect(told.at(-1)?.includes('two owners')).toBe(owners);
  });

  test.each([
    { name: 'six intervals later is a contest', atMs: 6 * INTERVAL_MS, told: 'writes, two owners' },
    { name: 'after ticks that came far too late proves nothing', atMs: 6 * INTERVAL_MS + 1, told: 'writes' },
  ])('what is put back $name', ({ atMs, told }) => {
    const ticks = [NOW_MS, NOW_MS + atMs].map((at) => ({ atMs: at, differs: true }));
    expect(run(ticks, SETTLED).told).toEqual(['writes', told]);
  });

  test('writes that only contest wait twice as long each time, ten minutes at most', () => {
    const ticks = contested(400);
    const { told } = run(ticks, SETTLED);
    const writtenAt = ticks.filter((_, index) => told[index]?.startsWith('writes')).map(({ atMs }) => atMs);
    const waits = writtenAt.slice(1).map((atMs, index) => (atMs - (writtenAt[index] ?? 0)) / 1000);
    expect(waits).toEqual([20, 40, 80, 160, 320, 600, 600, 600, 600, 600]);
    expect(told.slice(1).every((line) => line.includes('two owners'))).toBe(true);
  });

  test('a live address that is new, or one that went, is written at once', () => {
    const { told } = run([...contested(2), { atMs: 15_000, differs: true, wanted: 'a,b' }], SETTLED);
    expect(told).toEqual(['writes', 'waits, two owners', 'writes']);
  });

  test('and its being put back is contested again', () => {
    const ticks = [...contested(2), { atMs: 15_000, differs: true, wanted: 'a,b' }];
    const { told } = run([...ticks, { atMs: 25_000, differs: true, wanted: 'a,b' }], SETTLED);
    expect(told.at(-1)).toBe('waits, two owners');
  });

  test('an address that must not be there, or no address at all, is corrected at once', () => {
    const { told } = run([...contested(2), { atMs: 15_000, differs: true, urgent: true }], SETTLED);
    expect(told).toEqual(['writes', 'waits, two owners', 'writes, two owners']);
  });

  test('what our own write left is no change by another writer', () => {
    const { told } = run([contested(1), { atMs: 10_000, differs: true, version: 'own' }].flat(), SETTLED);
    expect(told).toEqual(['writes', 'writes']);
  });

  test('all is back to normal after ten quiet minutes, and not before', () => {
    const { state } = run(contested(2), SETTLED);
    const quietFor = (ms: number) => run([{ atMs: 10_000 + ms, differs: false }], state).state.contest;
    expect(quietFor(10 * MINUTES_MS - 1)).toBeDefined();
    expect(quietFor(10 * MINUTES_MS)).toBeUndefined();
  });

  test('a change that comes back after quiet minutes, but before ten, is still a contest', () => {
    const { state } = run(contested(4), SETTLED);
    const quiet = Array.from({ length: 5 }, (_, index) => ({ atMs: (index + 1) * MINUTES_MS, differs: false }));
    expect(run([...quiet, { atMs: 6 * MINUTES_MS, differs: true }], state).told.at(-1)).toBe('writes, two owners');
  });

  test('a state that says nothing new does not change from tick to tick', () => {
    expect(run(quietTicks(3)).state).toEqual(SETTLED);
    expect(run([...contested(1), ...quietTicks(3)], SETTLED).state).toEqual(SETTLED);
  });

  test('a write is forgotten when something else came to be wanted', () => {
    const { state } = run([...contested(1), { atMs: 10_000, differs: false, wanted: 'b' }], SETTLED);
    expect(state).toEqual({ wanted: 'b' });
  });
});

describe('the state of a contest', () => {
  test('comes back as it was saved', () => {
    const { state } = run(contested(3), SETTLED);
    expect(contestStateFrom(JSON.parse(JSON.stringify(state)))).toEqual(state);
  });

  test.each([
    undefined,
    null,
    'text',
    [],
    { lastWrite: 1, contest: [] },
    { lastWrite: { wanted: 'a' }, contest: { delayMs: 1 } },
  ])('of another layout counts as none: %j', (value) => {
    expect(contestStateFrom(value)).toEqual({});
  });
});

describe('the last writer', () => {
  const object = (...managers: readonly [string, string?][]) => ({
    metadata: {
      name: 'kubernetes',
      managedFields: managers.map(([manager, time]) => ({ manager, ...(time && { time }) })),
    },
  });

  test('is the newest field manager that is not our own', () => {
    const endpoints = object(
      ['kube-apiserver', '2026-01-01T00:00:02Z'],
      ['kubectl', '2026-01-01T00:00:01Z'],
      ['own', '2026-01-01T00:00:03Z'],
    );
    expect(lastManager([endpoints, undefined], 'own')).toBe('kube-apiserver');
    expect(lastManager([endpoints, object(['operator', '2026-01-01T00:00:09Z'])], 'own')).toBe('operator');
  });

  test('is one that left a time, if any did', () => {
    const endpoints = object(['old'], ['kubectl', '2026-01-01T00:00:01Z'], ['older']);
    expect(lastManager([endpoints], 'own')).toBe('kubectl');
  });

  test('is unknown when no writer left a name', () => {
    expect(lastManager([object(), object(['own'])], 'own')).toBeUndefined();
  });
});
