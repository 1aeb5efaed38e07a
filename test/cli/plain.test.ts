import { expect, test } from '@jest/globals';
import { plainOf } from '../../cli/plain.ts';
import { NOW_MS } from './status/status-support.ts';

const AT = '2023-11-14T22:13:20.000Z';

test('a document has ISO times, durations in milliseconds, and no maps', () => {
  const lastPass = { startedAtMs: NOW_MS, durationMs: 12.5, error: undefined };
  const ranges = [{ map: 'drawn', holds: [{ owner: 'ci', untilMs: NOW_MS }] }];
  expect(plainOf({ atMs: NOW_MS, withdrawnUntilMs: NOW_MS, lastPass, ranges, owner: null })).toStrictEqual({
    at: AT,
    withdrawnUntil: AT,
    lastPass: { startedAt: AT, durationMs: 12.5 },
    ranges: [{ holds: [{ owner: 'ci', until: AT }] }],
    owner: null,
  });
});

test('a document keeps the names of counts, and contains a time beyond the last date as a number', () => {
  expect(plainOf({ counts: { atMs: 1 }, untilMs: 1e20 })).toEqual({
    counts: { atMs: 1 },
    until: '100000000000000000000',
  });
});
