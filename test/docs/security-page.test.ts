import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const TESTS = path.join(import.meta.dirname, '..');
const page = readFileSync(path.join(TESTS, '../SECURITY.md'), 'utf8');
const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' });
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
  const sources = files
    .filter((name) => path.basename(name) === file)
    .map((name) => readFileSync(path.join(TESTS, name), 'utf8'));
  const quoted = [`'${title}'`, `"${title}"`, `\`${title}\``];
  expect(quoted.some((text) => sources.some((source) => source.includes(text)))).toBe(true);
});
