import { expect, test } from '@jest/globals';
import { GUARDS, isOfRow, rowsOfSecurityPage, testFileOf } from '../guards/guards.ts';
import { edited } from '../simulation/load-with-stand-ins.ts';
import { filesInRepository, readInRepository } from '../support/repository.ts';
import { integrationRows } from '../upstream/integration-table.ts';

const rows = rowsOfSecurityPage();

test('SECURITY.md lists the attacks', () => {
  const lines = readInRepository('SECURITY.md')
    .split('\n')
    .filter((line) => line.includes('.test.ts`'));
  expect(rows).toHaveLength(lines.length);
  expect(rows.length).toBeGreaterThan(30);
});

test.each(rows)(
  'the test "$title" exists in $file, and npm run guards removes a guard whose absence this test must notice',
  (row) => {
    expect(testFileOf(row)).toBeDefined();
    expect(GUARDS.some((guard) => isOfRow(guard, row))).toBe(true);
  },
);

const numbered = GUARDS.map((guard, index) => ({ ...guard, number: index + 1 }));
test.each(numbered)('guard $number is in the code, and its test is a row of SECURITY.md', (guard) => {
  expect(rows.some((row) => isOfRow(guard, row))).toBe(true);
  for (const edit of guard.edits) {
    const source = readInRepository(edit.file);
    expect(edited(source, edit)).not.toBe(source);
  }
});

const [unitTests = ''] = readInRepository('test/upstream-tests.md').split('\n## Integration tests');
const blocks = new Set(
  filesInRepository('test')
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => [...readInRepository(file).matchAll(/^ *describe\('([^']+)'/gm)])
    .map(([, title]) => title),
);
const upstreamRows = unitTests
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, , upstream = '', ours = '']) => ({ upstream, ours }));

test.each(upstreamRows)(
  'for the upstream test $upstream, test/upstream-tests.md names describe blocks that exist, or a reason why there are none',
  ({ ours }) => {
    const isNone = ours.startsWith('none: ');
    const [named = ''] = isNone ? [ours] : ours.split(';');
    // A row without tests of ours quotes kinds such as `IPAddress`, too. Titles of blocks have several words.
    const quoted = [...named.matchAll(/`([^`]+)`/g)].map(([, title = '']) => title);
    const titles = isNone ? quoted.filter((title) => title.includes(' ')) : quoted;
    expect(titles.length > 0 || isNone).toBe(true);
    expect(titles.filter((title) => !blocks.has(title))).toEqual([]);
  },
);

test('test/upstream-tests.md has one row for each integration test, with its results or a reason why it has no results', () => {
  const names = integrationRows().flatMap(({ pack, tests }) => tests.map((name) => `${pack}/${name}`));
  expect(names.filter((name) => !/^(controlplane|dualstack|service|servicecidr)\/Test\w+$/.test(name))).toEqual([]);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  expect(names.length).toBeGreaterThan(70);
});
