import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { Hold } from '../../lib/cluster/hold.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { type ClusterRanges, clusterRangesToJson, type ExportedRange } from '../../lib/exchange/cluster-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import { bitsBelow, RANGES, read, refusal, utf8 } from './files.ts';

const ms = fc.integer({ min: 0, max: 8.64e15 });
const terms = fc.record(
  {
    owner: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,61}[A-Za-z0-9]$/),
    takenUpBy: fc.constantFrom('any' as const, 'owner' as const),
    untilMs: ms,
    requestId: fc.string({ unit: 'grapheme', minLength: 1 }),
  },
  { requiredKeys: ['owner', 'takenUpBy'] },
);

/** Holds of some of the items that are taken, none of them in two. */
function holdsOn(range: string, data: Uint8Array): fc.Arbitrary<Hold[]> {
  const items = [...namesIn(range, data)];
  return fc
    .array(fc.record({ terms, count: fc.integer({ min: 1, max: 5 }) }), { maxLength: 4 })
    .map((holds) => holds.map(({ terms, count }) => ({ ...terms, items: items.splice(0, count) })))
    .map((holds) => holds.filter((hold) => hold.items.length > 0));
}

function namesIn(range: string, data: Uint8Array): Iterable<string> {
  const items = rangeItems(range);
  if (items instanceof ExchangeError) throw items;
  return items.in(data);
}

const exported = RANGES.chain(([range, max]) => bitsBelow(max).map((data) => ({ range, data })))
  .chain(({ range, data }) => holdsOn(range, data).map((holds) => ({ range, data, holds })))
  .chain((content) =>
    fc
      .record(
        {
          key: fc.constantFrom(...Object.values(RANGE_KEYS)),
          allocator: fc.constantFrom('table' as const, 'apiserver' as const),
          lastPassAtMs: ms,
        },
        { requiredKeys: ['key', 'allocator'] },
      )
      .map((rest): ExportedRange => ({ ...content, ...rest })),
  );

const clusterRanges: fc.Arbitrary<ClusterRanges> = fc.record({
  cluster: fc.string({ minLength: 1 }),
  exportedAtMs: ms,
  generation: fc.nat(),
  ranges: fc.uniqueArray(exported, { selector: ({ key }) => key, maxLength: 3 }),
});

const HOLD: Hold = { items: ['10.0.0.10'], owner: 'ci', untilMs: 60_000, takenUpBy: 'any', requestId: 'r1' };
const DEMO: ClusterRanges = {
  cluster: 'demo',
  exportedAtMs: 0,
  generation: 3,
  ranges: [
    {
      key: 'ranges/serviceips',
      range: '10.0.0.0/24',
      allocator: 'table',
      lastPassAtMs: 0,
      data: fromBits([0, 9]),
      holds: [HOLD],
    },
  ],
};
const FILE = JSON.parse(clusterRangesToJson(DEMO));

/** The file with other fields in its only range. */
const withRange = (fields: object) => ({ ...FILE, ranges: [{ ...FILE.ranges[0], ...fields }] });
const withHold = (fields: object) => withRange({ holds: [{ ...FILE.ranges[0].holds[0], ...fields }] });

describe('The ranges of a cluster', () => {
  test('are the same after a way through their file', () => {
    fc.assert(
      fc.property(clusterRanges, (exported) => {
        expect(read(clusterRangesToJson(exported))).toEqual({
          kind: 'ClusterRanges',

          clusterRanges: exported,
        });
      }),
    );
  });

  test('are a file that a person can read', () => {
    expect(FILE).toEqual({
      apiVersion: 'kube-bootstrap-controller/v1',
      kind: 'ClusterRanges',
      cluster: 'demo',
      exportedAt: '1970-01-01T00:00:00.000Z',
      generation: 3,
      ranges: [
        {
          key: 'ranges/serviceips',
          range: '10.0.0.0/24',
          allocator: 'table',
          lastPassAt: '1970-01-01T00:00:00.000Z',
          used: 2,
          data: 'AgE=',
          holds: [
            {
              items: ['10.0.0.10'],
              owner: 'ci',
              until: '1970-01-01T00:01:00.000Z',
              takenUpBy: 'any',
              requestId: 'r1',
            },
          ],
        },
      ],
    });
    expect([...bitsOf(DEMO.ranges[0]?.data ?? new Uint8Array(0))]).toEqual([0, 9]);
  });

  test('are read with the canonical text of a range', () => {
    expect(read(JSON.stringify(withRange({ range: '10.0.0.77/24' })))).toMatchObject({
      clusterRanges: { ranges: [{ range: '10.0.0.0/24' }] },
    });
  });

  test.each([
    ['a later version', { ...FILE, apiVersion: 'kube-bootstrap-controller/v2' }, refusal('WrongKind')],
    ['a field that is not known', { ...FILE, extra: 1 }, refusal('Malformed', 'extra')],
    ['a time that is none', { ...FILE, exportedAt: 'today' }, refusal('Malformed', 'exportedAt')],
    ['ranges that are none', { ...FILE, ranges: Array(22).fill(1) }, refusal('Malformed', 'ranges.0', 'and 2 more')],
    ['one range twice', { ...FILE, ranges: [FILE.ranges[0], FILE.ranges[0]] }, refusal('Malformed', 'twice')],
    [
      'a key that is none',
      withRange({ key: 'ranges/other' }),
      refusal('Malformed', 'ranges.0.key is none of ranges/serviceips'),
    ],
    ['data that lost a byte', withRange({ data: 'AQ==' }), refusal('Malformed', '"used": 2', 'marks 1')],
    [
      'data longer than the range',
      withRange({ range: '10.0.0.0/29' }),
      refusal('NotInRange', '10.0.0.0/29 has 6 addresses'),
    ],
    ['a hold of nothing', withHold({ items: [] }), refusal('Malformed', 'holds.0.items')],
    [
      'a hold of what is free',
      withHold({ items: ['10.0.0.11'] }),
      refusal('Malformed', '"10.0.0.11"', 'does not mark'),
    ],
    ['a hold by another text of an address', withHold({ items: ['010.0.0.10'] }), refusal('Malformed', '"010.0.0.10"')],
    ['an item held twice', withHold({ items: ['10.0.0.10', '10.0.0.10'] }), refusal('Malformed', 'two holds')],
    ['an owner of 10 KB', withHold({ owner: 'x'.repeat(10_240) }), refusal('Malformed', 'can own no hold')],
    ['a hold that ended before 1970', withHold({ until: '1969-12-31T00:00:00Z' }), refusal('Malformed', 'can not end')],
  ])('are refused with %s', (_, file, expected) => {
    expect(readExchangeFile(utf8(JSON.stringify(file)))).toEqual(expected);
  });
});
