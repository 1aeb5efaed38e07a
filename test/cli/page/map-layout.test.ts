import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CellLook, itemsFrom, itemText, layoutOf } from '../../../cli/page/map-layout.ts';
import { CELL_STATES, type CellState, type RangeMap } from '../../../cli/status/cluster-status.ts';
import { addressOf, formatAddress, formatIPv4 } from '../../../lib/allocator/ip-address.ts';

const letters = Object.keys(CELL_STATES) as CellState[];
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
      if (Number(x) + Number(length) > columns) throw new Error('a stroke leaves its row');
      for (let cell = 0; cell < Number(length); cell++) looks[Number(y) * columns + Number(x) + cell] = look;
    }
  }
  return looks;
}

test('each cell is drawn once, in its place and state, and counted in the legend', () => {
  fc.assert(
    fc.property(anyMap, (map) => {
      const { counts } = layoutOf(map);
      expect(drawn(map).join('')).toBe(map.cells);
      for (const look of letters) expect(counts.get(look) ?? 0).toBe(map.cells.split(look).length - 1);
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

test('a bucket fills up in four levels, and one with a duplicate, leak or hold is drawn as such', () => {
  const fill = [0, 1, 4, 5, 8, 9, 12, 13, 16, 16, 3, 1];
  const map = { first: '10.96.0.0', itemsPerCell: 16, cells: `F${'U'.repeat(8)}DLH`, fill };

  expect(drawn(map)).toEqual(['F', 'U1', 'U1', 'U2', 'U2', 'U3', 'U3', 'U4', 'U4', 'D', 'L', 'H']);
});

test.each([
  ['10.96.0.0', 300, '10.96.1.44'],
  ['fd00:10:96::', 65_536, 'fd00:10:96::1:0'],
  ['30000', 2_767, '32767'],
])('in the range that begins with %s, number %d is %s', (first, index, item) => {
  const { kind, base } = itemsFrom(first);
  expect(itemText(kind, base, index)).toBe(item);
});

const zeroRuns = fc
  .array(fc.constantFrom(0n, 0n, 1n, 0xabcn, 0xffffn), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.reduce<bigint>((value, group) => (value << 16n) | group, 0n));
const anyAddress = fc.oneof(
  fc.bigInt({ min: 0n, max: 0xffffffffn }).map((value) => ({ kind: 'ipv4' as const, value })),
  fc.oneof(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), zeroRuns).map((value) => ({ kind: 'ipv6' as const, value })),
);

test('each address has its canonical text, also where the page calculates it', () => {
  const inThePage = new Function(`return ${String(itemText)}`)() as typeof itemText;
  fc.assert(
    fc.property(anyAddress, ({ kind, value }) => {
      const text = kind === 'ipv4' ? formatIPv4(Number(value)) : formatAddress(addressOf(value));
      expect(inThePage(kind, `0x${value.toString(16)}`, 0)).toBe(text);
    }),
    { numRuns: 1_000 },
  );
});
