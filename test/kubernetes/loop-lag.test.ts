import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { measureLag } from '../../lib/kubernetes/https-prober.ts';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** The clock goes on by itself with each timer; `blockedMs` it goes on without any. */
describe('the lag of the event loop', () => {
  test.each([
    { name: 'is none while timers fire in time', blockedMs: 0, atEnd: false, lagMs: 0 },
    { name: 'is how long a timer was late', blockedMs: 700, atEnd: false, lagMs: 700 },
    { name: 'is known before the late timer fires', blockedMs: 700, atEnd: true, lagMs: 700 },
  ])('$name', ({ blockedMs, atEnd, lagMs }) => {
    let extraMs = 0;
    const worst = measureLag(() => jest.now() + extraMs);
    jest.advanceTimersByTime(1_000);
    extraMs = blockedMs;
    jest.advanceTimersByTime(atEnd ? 99 : 1_000);
    expect(worst()).toBeGreaterThanOrEqual(lagMs === 0 ? 0 : lagMs - 1);
    expect(worst()).toBeLessThanOrEqual(lagMs);
    expect(jest.getTimerCount()).toBe(0);
  });
});
