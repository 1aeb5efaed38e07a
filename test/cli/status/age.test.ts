import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatAge, formatDuration } from '../../../cli/status/age.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

describe('an age, as kubectl prints it', () => {
  test.each([
    [0, '0s'],
    [999, '0s'],
    [5 * SECOND, '5s'],
    [119 * SECOND, '119s'],
    [2 * MINUTE, '2m'],
    [3 * MINUTE + 20 * SECOND, '3m20s'],
    [10 * MINUTE - 1, '9m59s'],
    [10 * MINUTE + 59 * SECOND, '10m'],
    [179 * MINUTE, '179m'],
    [3 * HOUR, '3h'],
    [7 * HOUR + 59 * MINUTE, '7h59m'],
    [8 * HOUR + 59 * MINUTE, '8h'],
    [47 * HOUR, '47h'],
    [2 * DAY, '2d'],
    [7 * DAY + 23 * HOUR, '7d23h'],
    [8 * DAY + 23 * HOUR, '8d'],
    [729 * DAY, '729d'],
    [2 * YEAR + 3 * DAY, '2y3d'],
    [8 * YEAR + 3 * DAY, '8y'],
  ])('%d ms are shown as %s', (ms, text) => {
    expect(formatAge(ms)).toBe(text);
  });

  test('a time up to a second in the future is shown as now, and a later one as invalid', () => {
    expect(formatAge(-1_999)).toBe('0s');
    expect(formatAge(-2_000)).toBe('<invalid>');
  });

  test('the age of a past time has at most seven characters', () => {
    fc.assert(fc.property(fc.nat(2 ** 31 - 1), (seconds) => formatAge(seconds * SECOND).length <= 7));
  });
});

describe('a duration', () => {
  test.each([
    [0, '0ms'],
    [-3, '0ms'],
    [12.5, '13ms'],
    [412, '412ms'],
    [1_000, '1s'],
    [1_290, '1.2s'],
    [45_900, '45s'],
    [119_999, '119s'],
    [200_000, '3m20s'],
  ])('%d ms are shown as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
