import { describe, expect, test } from '@jest/globals';
import { InvalidArgumentError } from 'commander';
import { ownerFrom, parseHoldFor } from '../../cli/allocate/request.ts';
import { holdEnd, itemsText } from '../../cli/ranges/range-words.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { badHold } from '../../lib/cluster/hold.ts';

describe('items of a range', () => {
  test.each<[string, string, number[], string]>([
    ['are none', '10.0.0.0/24', [], ''],
    ['are named one by one', '10.0.0.0/24', [0, 4], '10.0.0.1, 10.0.0.5'],
    ['are named one by one where two are neighbours', '30000-30010', [3, 4], '30003, 30004'],
    [
      'are named by first and last where more than two are neighbours',
      '30000-30010',
      [0, 3, 4, 5],
      '30000, 30003-30005',
    ],
    [
      'are counted where there are many',
      '10.0.0.0/24',
      Array.from({ length: 13 }, (_, index) => index * 2),
      '10.0.0.1, 10.0.0.3, 10.0.0.5, 10.0.0.7, 10.0.0.9, 10.0.0.11, 10.0.0.13, 10.0.0.15, 10.0.0.17, 10.0.0.19 and 3 more',
    ],
  ])('%s', (_, range, bits, text) => {
    expect(itemsText(range, fromBits(bits))).toBe(text);
  });
});

describe('a hold', () => {
  test.each([
    ['never', undefined, 'never'],
    ['in an hour, to the second', 3_599_700, 'in 60m'],
    ['in an hour, to the minute', 3_595_000, 'in 60m'],
    ['in five minutes, to the second', 299_700, 'in 5m'],
    ['at once', 0, '0s ago'],
    ['before', -5_000, '5s ago'],
  ])('ends %s', (_, untilMs, text) => {
    const hold = { owner: 'ci', takenUpBy: 'any', ...(untilMs !== undefined && { untilMs }) } as const;
    expect(holdEnd({ ...hold, ...(untilMs !== undefined && { untilMs: untilMs + 10_000_000 }) }, 10_000_000)).toBe(
      text,
    );
  });

  test.each([
    ['alice', 'alice'],
    ['DOMAIN\\alice smith', 'DOMAIN-alice-smith'],
    ['_svc_', 'svc'],
    [`${'a'.repeat(62)}.b`, 'a'.repeat(62)],
    ['日本', 'kbctl'],
    ['', 'kbctl'],
  ])('has for the user %j the owner %s', (name, owner) => {
    expect(ownerFrom(name)).toBe(owner);
    expect(badHold({ owner, takenUpBy: 'any' })).toBeUndefined();
  });

  test('is for a time or without end', () => {
    expect(parseHoldFor('forever')).toBe('forever');
    expect(parseHoldFor('1h30m')).toBe(5_400_000);
    expect(() => parseHoldFor('soon')).toThrow(InvalidArgumentError);
  });
});
