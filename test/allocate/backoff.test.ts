import { describe, expect, test } from '@jest/globals';
import { Backoff } from '../../lib/allocate/allocation.ts';

function aBackoff() {
  const waits: number[] = [];
  const backoff = new Backoff(async (ms) => void waits.push(ms));
  const waited = async (work: () => Promise<void>) => {
    waits.length = 0;
    await work();
    return [...waits];
  };
  return { backoff, waited };
}

describe('Backoff', () => {
  test('starts at once without contention', async () => {
    const { backoff, waited } = aBackoff();
    expect(await waited(() => backoff.begin())).toEqual([]);
  });

  test('waits a random part of a time that doubles with each loss, and is never above two seconds', async () => {
    const { backoff, waited } = aBackoff();
    for (let atMost = 40; atMost < 100_000; atMost *= 2) {
      const [wait = Number.NaN] = await waited(() => backoff.lost());
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThan(Math.min(atMost, 2_000));
    }
  });

  test('makes the next caller wait as well, until as many attempts succeeded as were lost', async () => {
    const { backoff, waited } = aBackoff();
    for (let losses = 0; losses < 3; losses++) await backoff.lost();
    for (let wins = 0; wins < 3; wins++) {
      expect(await waited(() => backoff.begin())).toHaveLength(1);
      backoff.won();
    }
    expect(await waited(() => backoff.begin())).toEqual([]);
  });
});
