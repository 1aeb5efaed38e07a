import { expect, test } from '@jest/globals';
import { type Attack, aFleet, type FleetModel, quantile } from '../support/fleet-model.ts';

const MINUTE_MS = 60_000;
const INTERVAL_MS = 10_000;

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `c-${String(index).padStart(3, '0')}`);
}

const aFleetOf = (count: number) => aFleet({ names: names(count), slots: 10 }, () => false);

async function minutes(fleet: FleetModel, count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) await fleet.minute();
}

/** Returns the longest time between two completed passes, for each cluster that is not hostile. */
function longestGaps(fleet: FleetModel, count: number, fromMs: number): number[] {
  return names(count)
    .filter((name) => !fleet.hostile.has(name))
    .map((name) => {
      const times = fleet.completed.flatMap((pass) => (pass.name === name && pass.atMs >= fromMs ? [pass.atMs] : []));
      const all = [fromMs, ...times, fleet.clock.nowMs];
      return Math.max(...all.slice(1).map((atMs, index) => atMs - (all[index] ?? 0)));
    });
}

const ATTACKS: readonly Attack[] = ['ends', 'hangs', 'blocks'];

test.each(ATTACKS.flatMap((attack) => [1, 2].map((hostile) => ({ attack, hostile }))))(
  'if $hostile of 16 clusters are hostile and each of their passes $attack the process, each other cluster has a pass at least every interval plus 60 s',
  async ({ attack, hostile }) => {
    const fleet = await aFleetOf(16);
    await fleet.minute();
    for (const name of names(16).slice(3, 3 + hostile)) fleet.hostile.set(name, attack);
    const attackedAtMs = fleet.clock.nowMs;
    await minutes(fleet, 4);
    expect(Math.max(...longestGaps(fleet, 16, attackedAtMs))).toBeLessThan(INTERVAL_MS + MINUTE_MS);
    expect(Math.max(...longestGaps(fleet, 16, attackedAtMs + 2 * MINUTE_MS))).toBeLessThan(1.5 * INTERVAL_MS);
  },
);

test('if a cluster attacks each time it shares a process again, it runs alone for twice as long after each attack', async () => {
  const fleet = await aFleetOf(16);
  const attack = async () => {
    fleet.hostile.set('c-003', 'ends');
    await fleet.minute();
    fleet.hostile.clear();
    await minutes(fleet, 2);
  };
  const aloneMs = async () => {
    const fromMs = fleet.clock.nowMs;
    while (await fleet.isAlone('c-003')) fleet.clock.nowMs += 10 * MINUTE_MS;
    return Math.round((fleet.clock.nowMs - fromMs) / (60 * MINUTE_MS));
  };
  const hours: number[] = [];
  for (let time = 0; time < 4; time += 1) {
    await attack();
    hours.push(await aloneMs());
  }
  expect(hours).toEqual([1, 2, 4, 8]);
});

test('if sixteen clusters begin to attack at the same time, the other clusters miss no tick from the fifth minute on', async () => {
  const fleet = await aFleetOf(48);
  await fleet.minute();
  const attackers = names(48).slice(0, 16);
  for (const name of attackers) fleet.hostile.set(name, 'hangs');
  await minutes(fleet, 4);
  const fromMs = fleet.clock.nowMs;
  const { dropped, latenessMs } = await fleet.minute();
  await minutes(fleet, 2);
  expect(dropped).toBe(0);
  expect(Math.max(...latenessMs)).toBeLessThan(1_000);
  expect(Math.max(...longestGaps(fleet, 48, fromMs))).toBeLessThan(INTERVAL_MS + 1_000);
  for (const name of attackers) {
    const passes = fleet.passes.filter((pass) => pass.name === name && pass.atMs >= fromMs);
    expect(passes.length).toBeGreaterThanOrEqual(1);
    expect(passes.length).toBeLessThanOrEqual(3);
  }
});

test('after the rollback of a version whose processes all crashed, every cluster has all its ticks', async () => {
  const fleet = await aFleetOf(24);
  for (const name of names(24)) fleet.hostile.set(name, 'ends');
  await minutes(fleet, 5);
  fleet.hostile.clear();
  await fleet.minute();
  const fromMs = fleet.clock.nowMs;
  await minutes(fleet, 2);
  expect(Math.max(...longestGaps(fleet, 24, fromMs))).toBeLessThan(2 * INTERVAL_MS);
});

test('if 10 of 100 clusters do not answer, no tick is dropped after the first minute, and from the third minute on, 99% of the ticks of the other clusters are less than a second late', async () => {
  const fleet = await aFleet({ names: names(100), slots: 4 });
  await fleet.minute();
  expect((await fleet.minute()).dropped).toBe(0);
  const { latenessMs, dropped } = await fleet.minute();
  expect(latenessMs).toHaveLength((100 - fleet.dead.size) * 6);
  expect(quantile(latenessMs, 0.99)).toBeLessThan(1_000);
  expect(dropped).toBe(0);
});

test('if a cluster answers again, it has a pass at every tick of the next minute', async () => {
  const fleet = await aFleet({ names: names(40), slots: 4 });
  await minutes(fleet, 3);
  const dead = [...fleet.dead];
  expect(dead).toHaveLength(4);
  fleet.dead.clear();
  const recoveredAtMs = fleet.clock.nowMs;
  await fleet.minute();
  for (const name of dead) {
    const passes = fleet.passes.filter((pass) => pass.name === name && pass.atMs >= recoveredAtMs);
    expect(passes).toHaveLength(6);
    expect(passes[0]?.atMs).toBeLessThan(recoveredAtMs + INTERVAL_MS);
  }
});
