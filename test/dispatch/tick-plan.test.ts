import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { followingTick, NONE_APART, planTicks, type SetApart } from '../../lib/dispatch/ticks.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import type { Suspect } from '../../lib/table/fleet-notes.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';

const MINUTE = Date.parse('2026-01-01T12:00:00Z');
const AT = { dueAtMs: MINUTE, nowMs: MINUTE, clustersPerTick: 16, apart: NONE_APART };
const { intervalSeconds } = aClusterSpec();

function clusters(count: number) {
  return Array.from({ length: count }, (_, index) => ({ name: `c-${index}`, intervalSeconds }));
}

/** Returns the seconds of the minute at which ticks are due, each once. */
function dueSeconds(plan: ReturnType<typeof planTicks>): number[] {
  return [...new Set(plan.map(({ tick }) => (tick.dueAtMs - MINUTE) / 1000))];
}

const namesOf = ({ tick }: ReturnType<typeof planTicks>[number]) => tick.clusters;

test('the ticks of 10,000 clusters are spread over ten seconds, and only the name of a cluster determines the second of its ticks', () => {
  const fleet = clusters(10_000);
  const plan = planTicks('kubernetes-service', fleet, AT);
  const bySecond = Map.groupBy(plan, ({ tick }) => (tick.dueAtMs - MINUTE) / 1000);
  expect([...bySecond.keys()].toSorted((one, other) => one - other)).toEqual(Array.from({ length: 60 }, (_, at) => at));
  for (const messages of bySecond.values()) expect(messages.length).toBeLessThanOrEqual(75);
  const first = (ticks: typeof plan) =>
    new Map(
      ticks.filter(({ isFirst }) => isFirst).flatMap((tick) => namesOf(tick).map((name) => [name, tick.delaySeconds])),
    );
  const smaller = first(planTicks('kubernetes-service', fleet.slice(500, 9_000), AT));
  const larger = first(plan);
  expect([...smaller].filter(([name, second]) => second !== larger.get(name))).toEqual([]);
});

test('the first tick of a cluster is sent at its time within the minute, or immediately if that time has passed', () => {
  const plan = planTicks('kubernetes-service', clusters(1_000), { ...AT, nowMs: MINUTE + 5_000 });
  const delays = plan.filter(({ isFirst }) => isFirst).map(({ delaySeconds }) => delaySeconds);
  expect([...new Set(delays)].toSorted()).toEqual([0, 1, 2, 3, 4]);
});

test('the ticks of a fleet are not spread over several seconds if all messages of the fleet can be processed at the same time', () => {
  expect(planTicks('kubernetes-service', clusters(160), AT)).toHaveLength(6 * 10);
});

test('clusters that do not answer share one message per minute, which is queued after the first messages of all clusters that answer', () => {
  const unreachable = new Set(['c-1', 'c-18']);
  const fleet = planTicks('kubernetes-service', clusters(20), { ...AT, apart: { ...NONE_APART, unreachable } });
  const first = fleet.filter(({ isFirst }) => isFirst).map(namesOf);
  expect(first.map((names) => names.length)).toEqual([16, 2, 2]);
  const withUnreachable = fleet.map(namesOf).filter((names) => names.some((name) => unreachable.has(name)));
  expect(withUnreachable).toEqual([['c-1', 'c-18']]);
  expect(first.at(-1)).toEqual(['c-1', 'c-18']);
  const few = planTicks('kubernetes-service', clusters(2), { ...AT, apart: { ...NONE_APART, unreachable } });
  expect(few.map((tick) => [tick.delaySeconds, ...namesOf(tick)])).toEqual([
    [0, 'c-0'],
    [0, 'c-1'],
    ...[10, 20, 30, 40, 50].map((seconds) => [seconds, 'c-0']),
  ]);
});

const suspects = (names: readonly string[], state: Suspect['state']): SetApart => {
  const suspect = { sinceMs: MINUTE, untilMs: MINUTE, accidents: 1, state };
  return { ...NONE_APART, suspects: new Map(names.map((name) => [name, suspect])) };
};

test('each suspect has a message of its own, and its next message is queued when its pass has ended; other clusters share messages', () => {
  const plan = planTicks('kubernetes-service', clusters(5), { ...AT, apart: suspects(['c-1', 'c-3'], 'again') });
  const alone = plan.filter(({ tick }) => tick.followedUntilMs !== undefined);
  expect(alone.map((tick) => [tick.isFirst, tick.tick.followedUntilMs, ...namesOf(tick)])).toEqual([
    [true, MINUTE + 60_000, 'c-1'],
    [true, MINUTE + 60_000, 'c-3'],
  ]);
  const shared = plan.filter((tick) => !alone.includes(tick));
  expect(shared.map(namesOf)).toEqual(Array.from({ length: 6 }, () => ['c-0', 'c-2', 'c-4']));
  const [first] = alone;
  const next = first && followingTick(first.tick, MINUTE + 12_000)[0];
  expect(next?.tick).toEqual({ ...first?.tick, dueAtMs: MINUTE + 20_000 });
  expect(next?.delaySeconds).toBe(8);
  expect(first && followingTick(first.tick, MINUTE + 50_001)).toEqual([]);
});

test.each<[number, Suspect['state'], string]>([
  [30, 'again', 'take turns in the eight processes that are left for them'],
  [30, 'unproven', 'take turns in the eight processes that are left for them'],
  [30, 'proven', 'have a tick each'],
  [41, 'unproven', 'have a tick each, because a single tenant is not the cause of so many suspects'],
])('if %i of 100 clusters are suspects in the state "%s", they %s', (count, state, _what) => {
  const names = clusters(count).map(({ name }) => name);
  const ticked = Array.from({ length: 10 }, (_, minute) => {
    const nowMs = MINUTE + minute * 60_000;
    const options = { ...AT, nowMs, dueAtMs: nowMs, apart: suspects(names, state) };
    const plan = planTicks('kubernetes-service', clusters(100), options);
    return plan.flatMap((tick) => (tick.tick.followedUntilMs === undefined ? [] : namesOf(tick)));
  });
  const inTurn = count === 30 && state !== 'proven';
  for (const each of ticked) expect(each).toHaveLength(inTurn ? 8 : count);
  expect(new Set(ticked.flat())).toEqual(new Set(names));
});

test('if the time of the event is ahead of the clock, the ticks are still queued within the minute', () => {
  const plan = planTicks('kubernetes-service', clusters(1), { ...AT, dueAtMs: MINUTE + 900_000 });
  expect(dueSeconds(plan)).toEqual([10, 20, 30, 40, 50]);
});

const OTHERS = LOOPS.filter((loop) => loop !== 'kubernetes-service');
test.each(OTHERS)('the loop %s gets messages only if there is more than one cluster', (loop) => {
  expect(planTicks(loop, clusters(1), AT)).toEqual([]);
  const plan = planTicks(loop, clusters(AT.clustersPerTick + 1), AT);
  expect(plan).toMatchObject(Array(2).fill({ isFirst: true, delaySeconds: 0 }));
  expect(plan.map((tick) => namesOf(tick).length)).toEqual([AT.clustersPerTick, 1]);
});

test('a cluster with an interval of one minute has one tick per minute', () => {
  const seldom = { name: 'seldom', intervalSeconds: { ...intervalSeconds, 'kubernetes-service': 60 } };
  const plan = planTicks('kubernetes-service', [...clusters(1), seldom], AT);
  const later = plan.filter(({ isFirst }) => !isFirst);
  expect(new Set(later.flatMap(namesOf))).toEqual(new Set(['c-0']));
});

test('every cluster is in exactly one message of each tick, and no message has more clusters than can run at the same time', () => {
  fc.assert(
    fc.property(fc.nat(200), fc.nat(59_999), fc.integer({ min: 1, max: 16 }), (count, lateMs, clustersPerTick) => {
      const options = { ...AT, clustersPerTick, nowMs: MINUTE + lateMs };
      const plan = planTicks('kubernetes-service', clusters(count), options);
      const ticks = plan.flatMap((tick) => namesOf(tick).map((name) => ({ ...tick, name })));
      const ticksOf = Map.groupBy(ticks, ({ name }) => name);
      const unequal = clusters(count).filter(({ name }) => {
        const ticks = ticksOf.get(name) ?? [];
        const later = ticks.flatMap(({ tick, isFirst }) => (isFirst ? [] : [tick.dueAtMs]));
        const inOrder = later.every((dueAtMs, at) => dueAtMs === (later[0] ?? 0) + at * 10_000);
        return ticks.length - later.length !== Math.min(1, count - 1) || !inOrder;
      });
      expect(unequal).toEqual([]);
      expect(plan.filter(({ tick }) => tick.clusters.length > clustersPerTick)).toEqual([]);
      expect(plan.filter(({ delaySeconds }) => delaySeconds < 0 || delaySeconds > 60)).toEqual([]);
    }),
  );
});
