import { expect, test } from '@jest/globals';
import { type Column, textTable } from '../../cli/text-table.ts';

interface Row {
  readonly name: string;
  readonly size: string;
  readonly about: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'NAME', text: ({ name }) => name },
  { title: 'SIZE', text: ({ size }) => size, yields: true },
  { title: 'AGE', text: () => '5s', yields: true },
  { title: 'ABOUT', text: ({ about }) => about, shrinks: true },
];
const ROWS: readonly Row[] = [{ name: '茶', size: '10', about: 'a text that is longer than its column' }];

const table = (columns?: number) => textTable(COLUMNS, ROWS, columns, (_, text) => text);

test('a table without a given width is as wide as its content', () => {
  expect(table()).toEqual(['NAME   SIZE   AGE   ABOUT', '茶     10     5s    a text that is longer than its column']);
});

test.each([
  { columns: 40, title: 'NAME   SIZE   AGE   ABOUT', row: '茶     10     5s    a text that is long…' },
  { columns: 30, title: 'NAME   AGE   ABOUT', row: '茶     5s    a text that is l…' },
  { columns: 20, title: 'NAME   ABOUT', row: '茶     a text that …' },
  { columns: 10, title: 'NAME   ABOUT', row: '茶     a text that…' },
])('a table of $columns columns first cuts text, then omits columns', ({ columns, title, row }) => {
  expect(table(columns)).toEqual([title, row]);
});
