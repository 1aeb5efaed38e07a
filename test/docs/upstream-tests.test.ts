import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const TESTS = path.join(import.meta.dirname, '..');
const page = readFileSync(path.join(TESTS, 'upstream-tests.md'), 'utf8');
const blocks = new Set(
  readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => [...readFileSync(path.join(TESTS, file), 'utf8').matchAll(/^ *describe\('([^']+)'/gm)])
    .map(([, title]) => title),
);
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, , upstream = '', ours = '']) => ({ upstream, ours }));

test.each(rows)('the describe blocks that cover $upstream exist, or the page gives a reason', ({ ours }) => {
  if (ours.startsWith('none: ')) return;
  const [named = ''] = ours.split(';');
  const titles = [...named.matchAll(/`([^`]+)`/g)].map(([, title]) => title);
  expect(titles).not.toEqual([]);
  expect(titles.filter((title) => !blocks.has(title))).toEqual([]);
});
