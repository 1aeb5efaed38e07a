import { expect, test } from '@jest/globals';
import { InvalidArgumentError } from 'commander';
import { ownerFrom, parseHoldFor } from '../../cli/allocate/request.ts';
import { holdEnd } from '../../cli/ranges/range-words.ts';
import { HOLD_OWNER } from '../../lib/range/hold.ts';

test.each([
  ['never', undefined, 'never'],
  ['in an hour, to the second', 3_599_700, 'in 60m'],
  ['in an hour, to the minute', 3_595_000, 'in 60m'],
  ['in five minutes, to the second', 299_700, 'in 5m'],
  ['at once', 0, '0s ago'],
  ['before', -5_000, '5s ago'],
])('a hold ends %s', (_, untilMs, text) => {
  const hold = { owner: 'ci', takenUpBy: 'any', ...(untilMs !== undefined && { untilMs }) } as const;
  expect(holdEnd({ ...hold, ...(untilMs !== undefined && { untilMs: untilMs + 10_000_000 }) }, 10_000_000)).toBe(text);
});

test.each([
  ['alice', 'alice'],
  ['DOMAIN\\alice smith', 'DOMAIN-alice-smith'],
  ['_svc_', 'svc'],
  [`${'a'.repeat(62)}.b`, 'a'.repeat(62)],
  ['日本', 'kbctl'],
  ['', 'kbctl'],
])('a hold of the user %j has the owner %s', (name, owner) => {
  expect(ownerFrom(name)).toBe(owner);
  expect(owner).toMatch(HOLD_OWNER);
});

test('a hold ends at a time or never', () => {
  expect(parseHoldFor('forever')).toBe('forever');
  expect(parseHoldFor('1h30m')).toBe(5_400_000);
  expect(() => parseHoldFor('soon')).toThrow(InvalidArgumentError);
});
