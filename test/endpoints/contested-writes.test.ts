import { expect, test } from '@jest/globals';
import { type ContestState, contestStateFrom, judgeContest, twoOwners } from '../../lib/endpoints/contested-writes.ts';

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

/**
 * Runs ticks, which write unless the backoff withholds the write. Our writes set the version `own`, and those of the other writer
 * set `other`.
 */
function run(ticks: readonly Tick[], before: ContestState = {}) {
  let state = before;
  const outcomes = ticks.map(({ atMs, differs, wanted = 'a', urgent = false, version = differs ? 'other' : 'own' }) => {
    const clock = { nowMs: atMs, intervalMs: INTERVAL_MS };
    const facts = { wanted, differs, urgent, isForeign: false, versions: [version], ...clock };
    const verdict = judgeContest(state, facts);
    const writes = differs && !verdict.withhold;
    state = writes ? verdict.afterWrite(['own']) : verdict.state;
    return `${writes ? 'writes' : 'waits'}${verdict.twoOwners ? ', two owners' : ''}`;
  });
  return { outcomes, state };
}

/** Returns a tick that finds that another writer has changed the objects. */
const changed = (atMs: number, given: Partial<Tick> = {}): Tick => ({ atMs, differs: true, ...given });

/** Returns ticks. Before each tick, another writer has reverted the last write. */
const contested = (count: number) => Array.from({ length: count }, (_, index) => changed(index * INTERVAL_MS));

/** The state after a pass that wanted `a` and found it published. */
const SETTLED: ContestState = { wanted: 'a' };

const quietTicks = (count: number, intervalMs = INTERVAL_MS): Tick[] =>
  Array.from({ length: count }, (_, index) => ({ atMs: (index + 1) * intervalMs, differs: false }));

const againAfter = (ms: number) => [changed(NOW_MS), changed(NOW_MS + ms)];
const [toB, own] = [{ wanted: 'b' }, { version: 'own' }];
const urgent = changed(15_000, { urgent: true });
const TWICE = ['writes', 'writes'];
const [WAIT, CONTEST] = ['waits, two owners', 'writes, two owners'];

test.each<[string, readonly Tick[], readonly string[]]>([
  ['finds no contest right after a change of the addresses', [changed(0, toB), changed(10_000, toB)], TWICE],
  ['finds a contest if a change is repeated six intervals later', againAfter(6 * INTERVAL_MS), ['writes', CONTEST]],
  ['finds no contest if a change is repeated after more time', againAfter(6 * INTERVAL_MS + 1), ['writes', 'writes']],
  ['finds no contest if the objects have the version of our write', [changed(0), changed(10_000, own)], TWICE],
  ['makes an urgent correction at once during a contest', [...contested(2), urgent], ['writes', WAIT, CONTEST]],
])('a pass %s', (_title, ticks, outcomes) => {
  expect(run(ticks, SETTLED).outcomes).toEqual(outcomes);
});

test.each([
  { name: 'a second owner if it repeats its change two ticks later', quiet: 1, owners: true },
  { name: 'no second owner if it repeats its change three ticks later', quiet: 2, owners: false },
])('another writer is $name', ({ quiet, owners }) => {
  const { outcomes } = run([changed(0), ...quietTicks(quiet), changed((quiet + 1) * INTERVAL_MS)], SETTLED);
  expect(outcomes.at(-1)?.includes('two owners')).toBe(owners);
});

test('the wait between contested corrections doubles each time, up to ten minutes', () => {
  const ticks = contested(400);
  const { outcomes } = run(ticks, SETTLED);
  const writtenAt = ticks.filter((_, index) => outcomes[index]?.startsWith('writes')).map(({ atMs }) => atMs);
  const waits = writtenAt.slice(1).map((atMs, index) => (atMs - (writtenAt[index] ?? 0)) / 1000);
  expect(waits).toEqual([20, 40, 80, 160, 320, 600, 600, 600, 600, 600]);
  expect(outcomes.slice(1).every((line) => line.includes('two owners'))).toBe(true);
});

test('a contest ends only after ten minutes without a change by another writer', () => {
  const { state } = run(contested(2), SETTLED);
  const quietFor = (ms: number) => run([{ atMs: 10_000 + ms, differs: false }], state).state.contest;
  expect(quietFor(10 * MINUTES_MS - 1)).toBeDefined();
  expect(quietFor(10 * MINUTES_MS)).toBeUndefined();
});

test('ticks that find correct endpoints do not change the saved state', () => {
  expect(run(quietTicks(3)).state).toEqual(SETTLED);
  expect(run([...contested(1), ...quietTicks(3)], SETTLED).state).toEqual(SETTLED);
});

test('the state of a contest is read back unchanged', () => {
  const { state } = run(contested(3), SETTLED);
  expect(contestStateFrom(JSON.parse(JSON.stringify(state)))).toEqual(state);
});

const OTHER_LAYOUTS = [undefined, { lastWrite: { atMs: 1 }, contest: { delayMs: 1 } }];
test.each(OTHER_LAYOUTS)('the state of a contest is empty if the saved value has another layout: %j', (value) => {
  expect(contestStateFrom(value)).toEqual({});
});

const object = (...managers: readonly [string, string?][]) => {
  const managedFields = managers.map(([manager, time]) => ({ manager, ...(time && { time }) }));
  return { metadata: { name: 'kubernetes', managedFields } };
};
const lastWriter = (...objects: Parameters<typeof twoOwners>[0]) =>
  twoOwners(objects, { withhold: false, state: {} }).item;

const OURS = 'kube-bootstrap-controller';
const at = (second: number) => `2026-01-01T00:00:0${second}Z`;
const endpoints = object(['kube-apiserver', at(2)], ['kubectl', at(1)], [OURS, at(3)]);
const untimed = object(['old'], ['kubectl', at(1)], ['older']);
test.each([
  ['the other field manager with the most recent write', [endpoints, undefined], 'kube-apiserver'],
  ['the field manager with the most recent write to any object', [endpoints, object(['op', at(9)])], 'op'],
  ['a field manager whose entry has a time, rather than one without', [untimed], 'kubectl'],
  ['no other field manager if none is recorded', [object(), object([OURS])], 'an unknown field manager'],
])('the finding twoOwners contains %s', (_, objects, manager) => expect(lastWriter(...objects)).toBe(manager));

test('the finding twoOwners reports a deletion if an object is missing and no other field manager is recorded', () => {
  const found = [undefined, object(['kube-bootstrap-controller'])];
  const message = expect.stringContaining('another client deleted what was written here; it is written again.');
  expect(twoOwners(found, { withhold: false, state: {} })).toMatchObject({ message, item: 'another client' });
});

test.each([
  { withhold: true, outcome: 'contested writes wait 600 s' },
  { withhold: false, outcome: 'it is written again' },
])('the finding twoOwners contains "$outcome"', ({ withhold, outcome }) => {
  const contest = { lastSeenMs: 0, nextWriteMs: 0, delayMs: 600_000 };
  const message = `the endpoints of default/kubernetes have two owners: kubectl changed what was written here; ${outcome}. Keep one of them: API servers with --endpoint-reconciler-type=none do not write endpoints`;
  expect(twoOwners([object(['kubectl'])], { withhold, state: { contest } }).message).toBe(message);
});
