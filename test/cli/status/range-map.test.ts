import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
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

const sizeOf = ({ before, max, after }: TextRange) => before + max + after;

function count(cells: string, letters: string): number {
  return [...cells].filter((letter) => letters.includes(letter)).length;
}

describe('the cells of a range', () => {
  test.each([
    { text: '10.0.0.0/24', first: '10.0.0.0', itemsPerCell: 1, cells: `X${'R'.repeat(16)}${'F'.repeat(238)}X` },
    { text: '10.0.0.8/29', first: '10.0.0.8', itemsPerCell: 1, cells: 'XFFFFFFX' },
    { text: '10.1.0.0/22', first: '10.1.0.0', itemsPerCell: 1, cells: `X${'R'.repeat(64)}${'F'.repeat(958)}X` },
    { text: '10.1.0.0/16', first: '10.1.0.0', itemsPerCell: 64, cells: `${'R'.repeat(5)}${'F'.repeat(1019)}` },
    { text: '10.16.0.0/12', first: '10.16.0.0', itemsPerCell: 1024, cells: `R${'F'.repeat(1023)}` },
    { text: 'fd00::/120', first: 'fd00::', itemsPerCell: 1, cells: `X${'R'.repeat(16)}${'F'.repeat(239)}` },
    { text: 'fd00::/108', first: 'fd00::', itemsPerCell: 64, cells: `${'R'.repeat(5)}${'F'.repeat(1019)}` },
    { text: '30000-32767', first: '30000', itemsPerCell: 4, cells: `${'R'.repeat(22)}${'F'.repeat(670)}` },
    { text: '30000-30009', first: '30000', itemsPerCell: 1, cells: 'F'.repeat(10) },
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

  test('a /12 in which every address is in use, held and leaking is drawn as 1,024 leaking cells', () => {
    const max = 2 ** 20 - 2;
    const all = new Uint8Array(2 ** 17).fill(0xff);
    const map = drawn(layout('10.16.0.0/12'), { used: all, held: all, leaking: all, duplicates: [] });
    expect(map.cells).toBe('L'.repeat(1024));
    expect(map.fill?.reduce((sum, fill) => sum + fill, 0)).toBe(max);
  });
});

describe('invariants of maps', () => {
  const SMALL = ['10.0.0.0/24', '10.1.0.0/22', 'fd00::/118', '30000-30999', '80', '10.0.0.8/29'];
  const LARGE = ['10.1.0.0/16', '10.16.0.0/12', '10.4.0.0/15', '10.2.0.0/19', 'fd00::/112', '1-65535', '20000-30000'];

  /** Generates a range and the states of its items. Every item that is held or leaking is in use. */
  function marked(texts: readonly string[]) {
    return fc.constantFrom(...texts).chain((text) => {
      const placed = layout(text);
      const item = fc.nat(placed.max - 1);
      const state = fc.constantFrom('used', 'held', 'leaking', 'duplicate');
      return fc
        .uniqueArray(fc.tuple(item, state), { maxLength: 200, selector: ([index]) => index })
        .map((states) => ({ placed, states }));
    });
  }

  function bitsFor(states: readonly (readonly [number, string])[]): RangeBits {
    const those = (wanted: string) => states.flatMap(([item, state]) => (state === wanted ? item : []));
    const used = states.map(([item]) => item);
    return bits({ used, held: those('held'), leaking: those('leaking'), duplicates: those('duplicate') });
  }

  test('a cell of one item shows whether it is in use, held, leaking or duplicate', () => {
    fc.assert(
      fc.property(marked(SMALL), ({ placed, states }) => {
        const { cells } = drawn(placed, bitsFor(states));
        const counted = (wanted: string) => states.filter(([, state]) => state === wanted).length;
        expect(cells).toHaveLength(sizeOf(placed));
        expect(count(cells, 'DLHU')).toBe(states.length);
        expect(count(cells, 'DLHURF')).toBe(placed.max);
        expect(count(cells, 'D')).toBe(counted('duplicate'));
        expect(count(cells, 'L')).toBe(counted('leaking'));
        expect(count(cells, 'H')).toBe(counted('held'));
      }),
    );
  });

  test('in a map with several items per cell, the counts of the cells add up to the number of items in use, and every cell shown as used has a count above zero', () => {
    fc.assert(
      fc.property(marked(LARGE), ({ placed, states }) => {
        const { cells, fill = [], itemsPerCell } = drawn(placed, bitsFor(states));
        expect(cells.length).toBeLessThanOrEqual(1024);
        expect(cells.length).toBeGreaterThan(512);
        expect(Math.ceil(sizeOf(placed) / itemsPerCell)).toBe(cells.length);
        expect(fill.reduce((sum, one) => sum + one, 0)).toBe(states.length);
        expect([...cells].every((letter, at) => 'DLHU'.includes(letter) === (fill[at] ?? 0) > 0)).toBe(true);
      }),
    );
  });
});
