import { expect, test } from '@jest/globals';
import { drawRange, type RangeBits } from '../../../cli/status/range-map.ts';
import { type TextRange, textRange } from '../../../cli/status/range-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../../lib/spec/spec-ranges.ts';
import { found } from '../../support/found.ts';
import { made } from '../../support/ranges.ts';

const layout = (text: string) => made(textRange(text.includes('/') ? RANGE_KEYS.primary : RANGE_KEYS.nodePorts, text));

const drawn = (range: TextRange, given: RangeBits) => found(drawRange(range, given));

function bits(items: Partial<Record<'used' | 'held' | 'leaking' | 'duplicates', readonly number[]>> = {}): RangeBits {
  const { used = [], held = [], leaking = [], duplicates = [] } = items;
  return { used: fromBits(used), held: fromBits(held), leaking: fromBits(leaking), duplicates };
}

test.each([
  { text: '10.0.0.8/29', first: '10.0.0.8', itemsPerCell: 1, cells: 'XFFFFFFX' },
  { text: '10.1.0.0/22', first: '10.1.0.0', itemsPerCell: 1, cells: `X${'R'.repeat(64)}${'F'.repeat(958)}X` },
  { text: '10.1.0.0/16', first: '10.1.0.0', itemsPerCell: 64, cells: `${'R'.repeat(5)}${'F'.repeat(1019)}` },
  { text: 'fd00::/120', first: 'fd00::', itemsPerCell: 1, cells: `X${'R'.repeat(16)}${'F'.repeat(239)}` },
  { text: '30000-32767', first: '30000', itemsPerCell: 4, cells: `${'R'.repeat(22)}${'F'.repeat(670)}` },
  { text: '80', first: '80', itemsPerCell: 1, cells: 'F' },
])(
  'the map of the range $text begins at $first and has $itemsPerCell items per cell',
  ({ text, first, itemsPerCell, cells }) => {
    const map = drawn(layout(text), bits());
    expect(map).toMatchObject({ first, itemsPerCell, cells });
    expect(map.fill).toEqual(itemsPerCell === 1 ? undefined : Array.from(cells, () => 0));
  },
);

test('a cell of one item with several states shows the worst state', () => {
  const all = { used: [0, 1, 2, 3], held: [1, 2, 3], leaking: [2, 3], duplicates: [3] };
  expect(drawn(layout('30000-30005'), bits(all)).cells).toBe('UHLDFF');
});

test('a cell of several items shows the worst state of these items, and how many of them are in use', () => {
  const map = drawn(layout('10.1.0.0/16'), bits({ used: [500, 501, 502, 700], leaking: [502] }));
  expect([map.cells[7], map.cells[10]]).toEqual(['L', 'U']);
  expect([map.fill?.[7], map.fill?.[10], map.fill?.[11]]).toEqual([3, 1, 0]);
});

test('a range without a usable item has no cells', () => {
  for (const text of ['10.0.0.0/31', '']) expect(drawRange(layout(text), bits())).toBeUndefined();
});
