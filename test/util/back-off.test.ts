import { expect, test } from '@jest/globals';
import { SharedBackOff } from '../../lib/util/back-off.ts';

function aBackoff() {
  const waits: number[] = [];
  const backoff = new SharedBackOff(async (ms) => void waits.push(ms), Math.random);
  const waited = async (work: () => Promise<void>) => {
    waits.length = 0;
    await work();
    return [...waits];
  };
  return { backoff, waited };
}

test.each([
  { tookMs: 10, longestMs: 1_000 },
  { tookMs: 100, longestMs: 5_000 },
  { tookMs: 10_000, longestMs: 8_000 },
])(
  'after a lost attempt of $tookMs ms, a request waits for a random time, whose limit doubles with each loss up to $longestMs ms',
  async ({ tookMs, longestMs }) => {
    const { backoff, waited } = aBackoff();
    for (let atMost = 40; atMost < 100_000; atMost *= 2) {
      const [wait = Number.NaN] = await waited(() => backoff.lost(0, tookMs));
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThan(Math.min(atMost, longestMs));
    }
  },
);

test('under contention, the maximum wait of a request decreases with each attempt', async () => {
  const { backoff, waited } = aBackoff();
  for (let losses = 0; losses < 10; losses++) await backoff.lost(0, 10);
  for (let attempt = 1; attempt < 50; attempt++) {
    const [wait = Number.NaN] = await waited(() => backoff.lost(attempt, 10));
    expect(wait).toBeLessThan(1_000 / (attempt + 1));
  }
});

test('lost attempts delay later callers until the same number of attempts has succeeded', async () => {
  const { backoff, waited } = aBackoff();
  expect(await waited(() => backoff.begin())).toEqual([]);
  for (let losses = 0; losses < 3; losses++) await backoff.lost(0, 10);
  for (let wins = 0; wins < 3; wins++) {
    expect(await waited(() => backoff.begin())).toHaveLength(1);
    backoff.won();
  }
  expect(await waited(() => backoff.begin())).toEqual([]);
});
