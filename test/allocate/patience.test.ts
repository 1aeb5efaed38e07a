import { describe, expect, test } from '@jest/globals';
import { Patience } from '../../lib/allocate/allocation.ts';

function aPatience() {
  const waits: number[] = [];
  const patience = new Patience(async (ms) => void waits.push(ms));
  const waited = async (work: () => Promise<void>) => {
    waits.length = 0;
    await work();
    return [...waits];
  };
  return { patience, waited };
}

describe('Patience', () => {
  test('starts at once where there is no crowd', async () => {
    const { patience, waited } = aPatience();
    expect(await waited(() => patience.begin())).toEqual([]);
  });

  test('waits a random part of a time that doubles with each loss, and is never above two seconds', async () => {
    const { patience, waited } = aPatience();
    for (let atMost = 40; atMost < 100_000; atMost *= 2) {
      const [wait = Number.NaN] = await waited(() => patience.lost());
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThan(Math.min(atMost, 2_000));
    }
  });

  test('has who comes next wait as well, until as many have won as have lost', async () => {
    const { patience, waited } = aPatience();
    for (let losses = 0; losses < 3; losses++) await patience.lost();
    for (let wins = 0; wins < 3; wins++) {
      expect(await waited(() => patience.begin())).toHaveLength(1);
      patience.won();
    }
    expect(await waited(() => patience.begin())).toEqual([]);
  });
});
