import { expect, test } from '@jest/globals';
import { filesInRepository, readInRepository } from '../support/repository.ts';

const page = readInRepository('test/upstream-tests.md');
const blocks = new Set(
  filesInRepository('test')
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => [...readInRepository(file).matchAll(/^ *describe\('([^']+)'/gm)])
    .map(([, title]) => title),
);
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, , upstream = '', ours = '']) => ({ upstream, ours }));

test.each(rows)(
  'for the upstream test $upstream, the page names describe blocks that exist, or gives a reason for having none',
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
