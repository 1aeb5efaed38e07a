import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CellLook, itemTexts, layoutOf } from '../../../cli/page/map-layout.ts';
import { ITEM_TEXT_SCRIPT } from '../../../cli/page/page-script.ts';
import { LOOKS } from '../../../cli/page/range-map.ts';
import { addressOf, formatAddress, formatIPv4 } from '../../../lib/allocator/ip-address.ts';
import { CELL_STATES, type RangeMap } from '../../../lib/status/cluster-status.ts';

const letters = Object.keys(CELL_STATES);
const anyMap: fc.Arbitrary<RangeMap> = fc
  .record({
    cells: fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 4_096, size: 'max' }),
    first: fc.constantFrom('10.0.0.0', 'fd00::', '30000'),
  })
  .map((map) => ({ ...map, itemsPerCell: 1 }));

/** The looks of all cells, as the strokes draw them. */
function drawn(map: RangeMap): CellLook[] {
  const { columns, strokes } = layoutOf(map);
  const looks: CellLook[] = [];
  for (const [look, path] of strokes) {
    for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)/g)) {
      for (let cell = 0; cell < Number(length); cell++) looks[Number(y) * columns + Number(x) + cell] = look;
    }
  }
  return looks;
}

test('each cell is drawn once, in its place and state', () => {
  fc.assert(
    fc.property(anyMap, (map) => {
      expect(drawn(map).join('')).toBe(map.cells);
    }),
  );
});

test('no stroke leaves its row', () => {
  fc.assert(
    fc.property(anyMap, (map) => {
      const { columns, strokes } = layoutOf(map);
      const runs = [...strokes.values()].flatMap((path) => [...path.matchAll(/M(\d+) \d+h(\d+)/g)]);
      return runs.every(([, x, length]) => Number(x) + Number(length) <= columns);
    }),
  );
});

test('the counts of the legend are those of the cells, and each look has a word', () => {
  fc.assert(
    fc.property(anyMap, (map) => {
      const { counts } = layoutOf(map);
      for (const [look, count] of counts) {
        expect(count).toBe(map.cells.split(look).length - 1);
        expect(LOOKS[look]).toMatch(/./);
      }
      expect([...counts.values()].reduce((sum, count) => sum + count, 0)).toBe(map.cells.length);
    }),
  );
});

test.each([
  ['a /28', '10.0.0.0', 16, 1, 16, 1, ['.0']],
  ['a /24', '10.0.0.0', 256, 1, 32, 8, ['.0', '.64', '.128', '.192']],
  ['a /20', '10.96.0.0', 4_096, 1, 64, 64, ['.0.0', '.2.0', '.4.0', '.6.0', '.8.0', '.10.0', '.12.0', '.14.0']],
  [
    'a /16 in buckets',
    '10.96.0.0',
    4_096,
    16,
    64,
    64,
    ['.0.0', '.32.0', '.64.0', '.96.0', '.128.0', '.160.0', '.192.0', '.224.0'],
  ],
  ['an IPv6 range', 'fd00::', 4_096, 16, 64, 64, ['::', ':2000', ':4000', ':6000', ':8000', ':a000', ':c000', ':e000']],
  ['the node ports', '30000', 2_768, 1, 100, 28, ['30000', '30400', '30800', '31200', '31600', '32000', '32400']],
])('%s has rows that begin at round items', (_, first, cells, itemsPerCell, columns, rows, labels) => {
  expect(layoutOf({ first, itemsPerCell, cells: 'F'.repeat(cells) })).toMatchObject({
    columns,
    rows,
    rowLabels: labels,
  });
});

describe('a bucket', () => {
  test('fills up in four levels', () => {
    const fill = [0, 1, 4, 5, 8, 9, 12, 13, 16];
    const map = { first: '10.96.0.0', itemsPerCell: 16, cells: `F${'U'.repeat(8)}`, fill };

    expect(drawn(map)).toEqual(['F', 'U1', 'U1', 'U2', 'U2', 'U3', 'U3', 'U4', 'U4']);
  });

  test('with a duplicate, leak or hold is drawn as such', () => {
    expect(drawn({ first: '10.96.0.0', itemsPerCell: 16, cells: 'DLH', fill: [16, 3, 1] })).toEqual(['D', 'L', 'H']);
  });
});

const inThePage = new Function(`${ITEM_TEXT_SCRIPT}; return itemText`)();

const zeroRuns = fc
  .array(fc.constantFrom(0n, 0n, 1n, 0xabcn, 0xffffn), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.reduce<bigint>((value, group) => (value << 16n) | group, 0n));

test.each([
  ['10.96.0.0', 300, '10.96.1.44'],
  ['192.168.255.0', 256, '192.169.0.0'],
  ['fd00::', 0, 'fd00::'],
  ['fd00:10:96::', 65_535, 'fd00:10:96::ffff'],
  ['fd00:10:96::', 65_536, 'fd00:10:96::1:0'],
  ['30000', 2_767, '32767'],
])('of the range that begins with %s, number %d is %s', (first, index, item) => {
  const { at, kind, base } = itemTexts(first);

  expect(at(index)).toBe(item);
  expect(inThePage(kind, base, index)).toBe(item);
});

test('the page and the server name each IPv6 address alike', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.bigInt({ min: 0n, max: (1n << 128n) - 65_536n }), zeroRuns),
      fc.nat(65_535),
      (base, index) => {
        const value = (base + BigInt(index)) & ((1n << 128n) - 1n);
        fc.pre(value === base + BigInt(index));
        expect(inThePage('ipv6', `0x${base.toString(16)}`, index)).toBe(formatAddress(addressOf(value)));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('the page and the server name each IPv4 address alike', () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff - 65_536), fc.nat(65_535), (base, index) => {
      const { kind, base: told, at } = itemTexts(formatIPv4(base));
      expect(inThePage(kind, told, index)).toBe(at(index));
    }),
  );
});
