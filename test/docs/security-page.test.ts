import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const REPOSITORY = path.join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(path.join(REPOSITORY, file), 'utf8');
const attacks = [...read('SECURITY.md').matchAll(/^\| (.+) \| `(test\/[^`]+)` \| `([^`]+)` \|$/gm)];

test('SECURITY.md lists the attacks', () => {
  const rows = read('SECURITY.md')
    .split('\n')
    .filter((line) => line.includes('| `test/'));
  expect(attacks).toHaveLength(rows.length);
  expect(attacks.length).toBeGreaterThan(30);
});

test.each(attacks.map(([, attack = '', file = '', title = '']) => ({ attack, file, title })))(
  'the test of "$attack" exists',
  ({ file, title }) => {
    expect(existsSync(path.join(REPOSITORY, file))).toBe(true);
    const source = read(file);
    expect([`'${title}'`, `"${title}"`, `\`${title}\``].some((text) => source.includes(text))).toBe(true);
  },
);
