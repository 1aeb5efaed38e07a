import path from 'node:path';
import { expect, test } from '@jest/globals';
import { filesInRepository, readInRepository } from '../support/repository.ts';

const page = readInRepository('SECURITY.md');
const files = filesInRepository('test');
const attacks = [...page.matchAll(/^\| `([\w-]+\.test\.ts)` \| `([^`]+)` \|$/gm)].map(([, file = '', title = '']) => ({
  file,
  title,
}));

test('SECURITY.md lists the attacks', () => {
  const rows = page.split('\n').filter((line) => line.includes('.test.ts`'));
  expect(attacks).toHaveLength(rows.length);
  expect(attacks.length).toBeGreaterThan(30);
});

test.each(attacks)('the test "$title" exists in $file', ({ file, title }) => {
  const sources = files.filter((name) => path.basename(name) === file).map(readInRepository);
  const quoted = [`'${title}'`, `"${title}"`, `\`${title}\``];
  expect(quoted.some((text) => sources.some((source) => source.includes(text)))).toBe(true);
});
