import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { itemsOf, LOOKS, runsOf } from '../../../cli/page/range-map.ts';
import { renderClusterPage } from '../../../cli/page/render-pages.ts';
import { CELL_STATES, type CellState, type RangeMap } from '../../../cli/status/cluster-status.ts';
import { aClusterStatus, clustersOfEachKind, nodePorts, STATUS_AT_MS } from '../../support/a-fleet-status.ts';

const letters = Object.keys(CELL_STATES) as CellState[];
const anyMap: fc.Arbitrary<RangeMap> = fc
  .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 1_024, size: 'max' })
  .map((cells) => ({ cells, first: '10.0.0.0', itemsPerCell: 1 }));

test('each cell is drawn once, in its place and state', () => {
  fc.assert(
    fc.property(anyMap, fc.constantFrom(32, 64), (map, columns) => {
      const runs = runsOf(map, columns);
      expect(runs.map(({ look, length }) => look.repeat(length)).join('')).toBe(map.cells);
      expect(runs.filter(({ from, length }) => (from % columns) + length > columns)).toEqual([]);
    }),
  );
});

test('a bucket is drawn in four levels of use, or as a duplicate, leak or hold if it has one', () => {
  const fill = [0, 1, 4, 5, 8, 9, 12, 13, 16, 16, 3, 1];
  const map = { first: '10.96.0.0', itemsPerCell: 16, cells: `F${'U'.repeat(8)}DLH`, fill };
  const looks = runsOf(map, 32).flatMap(({ look, length }) => Array<string>(length).fill(look));

  expect(looks).toEqual(['F', 'U1', 'U1', 'U2', 'U2', 'U3', 'U3', 'U4', 'U4', 'D', 'L', 'H']);
});

test.each([
  ['10.96.0.0', 1, 300, 1, '10.96.1.44'],
  ['10.96.0.0', 16, 3, 2, '10.96.0.48 to 10.96.0.79'],
  ['fd00:10:96::', 64, 1_023, 1, 'fd00:10:96::ffc0 to fd00:10:96::ffff'],
  ['30000', 4, 691, 1, '32764 to 32767'],
])(
  'in a map from %s with %d items per cell, the cells from number %d on, %d cells in all, are the items %s',
  (first, itemsPerCell, from, length, items) => {
    expect(itemsOf({ first, itemsPerCell, cells: '' }, from, length)).toBe(items);
  },
);

test('each state of a cell has a pattern, and a word in the legend', () => {
  const range = { ...nodePorts(), map: { itemsPerCell: 1, first: '30000', cells: letters.join('') } };
  const fills = { itemsPerCell: 16, first: '10.0.0.0', cells: 'UUUU', fill: [1, 5, 9, 16] };
  const page = renderClusterPage(aClusterStatus({ ranges: [range, { ...range, map: fills }] }), { atMs: STATUS_AT_MS });

  for (const [look, word] of Object.entries(LOOKS)) {
    expect(page).toContain(`<pattern id="p${look}"`);
    expect(page).toContain(`fill="url(#p${look})"/></svg>${word} <b>`);
  }
});

test('a map has a text alternative, and its cells name their items and state', () => {
  const [contested = aClusterStatus()] = clustersOfEachKind();
  const page = renderClusterPage(contested, { atMs: STATUS_AT_MS });

  expect(page).toMatch(/aria-label="Map of the cluster IPs 10\.0\.0\.0\/24: \d+ of 254 in use"/);
  expect(page).toContain('<title>10.0.0.37: duplicate</title>');
});
