import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { BOUNDS, LONGEST_SPEC_TEXT, LONGEST_TEXT, LONGEST_TOKEN, MOST_HOSTS } from '../../lib/cluster/bounds.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../SECURITY.md'), 'utf8');
const number = (most: number) => most.toLocaleString('en-US');

test('the bounds of SECURITY.md are those of the code', () => {
  const fields = Object.entries<Readonly<Record<string, number>>>(BOUNDS).flatMap(([what, bounds]) =>
    Object.entries(bounds).map(([field, most]) => `| ${what} | \`${field}\` | ${number(most)} |`),
  );
  const texts = [
    `| each object | characters of a text that a pass reads | ${number(LONGEST_TEXT)} |`,
    `| cluster spec | entries of \`apiServers\` with a \`host\` | ${number(MOST_HOSTS)} |`,
    `| cluster spec | characters of its YAML | ${number(LONGEST_SPEC_TEXT)} |`,
    `| credential | characters of a token, or of a name and password | ${number(LONGEST_TOKEN)} |`,
  ];
  const table = page.split('## Bounds')[1]?.split('\n## ')[0] ?? '';
  const rows = table.split('\n').filter((line) => /^\| .+ \| [\d,]+ \|$/.test(line));
  expect(rows).toEqual([...fields, ...texts]);
});
