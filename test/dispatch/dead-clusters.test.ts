import { expect, test } from '@jest/globals';
import { aFleet, quantile } from '../support/fleet-model.ts';

const INTERVAL_MS = 10_000;
const NAMES = Array.from({ length: 100 }, (_, index) => `c-${String(index).padStart(3, '0')}`);

test('if 10 of 100 clusters are dead, no tick is dropped after the first minute, and ticks of the others are at most a second late after the second', async () => {
  const fleet = await aFleet({ names: NAMES, slots: 4 });
  await fleet.minute();
  expect((await fleet.minute()).dropped).toBe(0);
  const { latenessMs, dropped } = await fleet.minute();
  expect(latenessMs).toHaveLength((NAMES.length - fleet.dead.size) * 6);
  expect(quantile(latenessMs, 0.99)).toBeLessThan(1_000);
  expect(dropped).toBe(0);
});

test('a cluster that answers again has a pass in the next minute, and at every tick after that', async () => {
  const fleet = await aFleet({ names: NAMES.slice(0, 40), slots: 4 });
  for (let minute = 0; minute < 3; minute += 1) await fleet.minute();
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
