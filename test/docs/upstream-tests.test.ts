import { expect, test } from '@jest/globals';
import { filesInRepository, readInRepository } from '../support/repository.ts';
import { integrationRows } from '../upstream/integration-table.ts';

const [unitTests = ''] = readInRepository('test/upstream-tests.md').split('\n## Integration tests');
const blocks = new Set(
  filesInRepository('test')
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => [...readInRepository(file).matchAll(/^ *describe\('([^']+)'/gm)])
    .map(([, title]) => title),
);
const rows = unitTests
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, , upstream = '', ours = '']) => ({ upstream, ours }));

test.each(rows)(
  'for the upstream test $upstream, the page names describe blocks that exist, or gives a reason why it names no block',
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

test('the page has one row for each integration test, with its results or a reason why it has no results', () => {
  const names = integrationRows().flatMap(({ pack, tests }) => tests.map((name) => `${pack}/${name}`));
  expect(names.filter((name) => !/^(controlplane|dualstack|service|servicecidr)\/Test\w+$/.test(name))).toEqual([]);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  expect(names.length).toBeGreaterThan(70);
});
