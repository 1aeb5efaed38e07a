import { describe, expect, test } from '@jest/globals';
import { consoleBlocks, fencedBlocks, isWhatIsPrinted, showsThat } from '../support/console-blocks.ts';

const LEASES = 'ADDRESS   ENDS\n10.0.0.1   in 9m58s\n';

describe('a page that shows the printed output', () => {
  test.each([
    ['with exactly the printed text', 'nothing to do\n', ['nothing to do']],
    ['with other ages and column widths', LEASES, ['ADDRESS  ENDS', '10.0.0.1  in 14s']],
    ['with other times', 'until 2026-11-21T08:22:12.891Z\n', ['until 2026-01-01T00:00:00Z']],
    ['with other loopback ports', 'at http://127.0.0.1:34009/', ['at http://127.0.0.1:1/']],
    ['with ... for the rest of a line', 'prod-eu-1: http://a (b)\n', ['prod-eu-1: ...']],
    ['with ... for several lines', 'a\nb\nc\nd\n', ['a', '...', 'd']],
    ['with ... for no line', 'a\nd\n', ['a', '...', 'd']],
    ['without the empty lines', 'a\n\nb\n', ['a', 'b']],
  ])('a page %s is accepted as correct', (_title, printed, page) => {
    expect(isWhatIsPrinted(printed, page)).toBe(true);
  });
});

describe('a stale page', () => {
  test.each([
    ['shows another number', '3 Services seen\n', ['4 Services seen']],
    ['shows another address', '10.0.0.1\n', ['10.0.0.2']],
    ['lacks a line at the end', 'a\nb\n', ['a']],
    ['lacks a line between', 'a\nb\nc\n', ['a', 'c']],
    ['has an extra line', 'a\n', ['a', 'b']],
    ['shows no output where there is some', 'a\n', []],
    ['shows an age although the command prints none', 'none\n', ['4s ago']],
  ])('a page is stale if it %s', (_title, printed, page) => {
    expect(isWhatIsPrinted(printed, page)).toBe(false);
  });
});

describe('the comparison of printed output with a page', () => {
  test.each<[string, boolean, string, string[]]>([
    ['a page shows printed lines in their order', true, 'a\nb\nc', ['a', 'c']],
    ['a page with another order of lines is wrong', false, 'a\nb', ['b', 'a']],
    ['a page with half a line is wrong', false, 'deployed well', ['deployed']],
    ['a number on the page matches any other number', true, 'in 31.5 s', ['in 7 s']],
    ['three dots of a page match any text', true, 'table kbc-dev is there', ['table ... is there', '...']],
    ['a page with a line that was not printed is wrong', false, '', ['deployed']],
  ])('showsThat follows the rule that %s', (_, said, printed, expected) => {
    expect(showsThat(printed, expected)).toBe(said);
  });
});

test("consoleBlocks returns the commands of a page's console blocks, each with its output", () => {
  const page = [
    'Deploy:',
    '',
    '   ```console',
    '   $ npm run deploy -- \\',
    '       --param table=x',
    '   deployed',
    '   $ cat a',
    '   ```',
    '',
    '```text',
    '$ not run',
    '```',
  ].join('\n');

  expect(fencedBlocks(page).map(({ language }) => language)).toEqual(['console', 'text']);
  expect(consoleBlocks('p.md', page)).toEqual([
    {
      at: 'p.md:3',
      commands: [
        { at: 'p.md:4', command: 'npm run deploy -- \\\n    --param table=x', output: ['deployed'] },
        { at: 'p.md:7', command: 'cat a', output: [] },
      ],
    },
  ]);
});
