import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { program } from '../../cli/program.ts';
import { generatedPages } from '../../tools/write-docs.ts';
import { GUARDS, isOfRow, rowsOfSecurityPage, testFileOf } from '../guards/guards.ts';
import { edited } from '../simulation/load-with-stand-ins.ts';
import { isWhatIsPrinted, pages } from '../support/console-blocks.ts';
import { filesInRepository, REPOSITORY, readInRepository } from '../support/repository.ts';
import { integrationRows } from '../upstream/integration-table.ts';

const markdownFiles = ['', 'docs', 'docs/adr', 'docs/tasks', 'test'].flatMap((folder) =>
  readdirSync(path.join(REPOSITORY, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join(folder, file)),
);

test.each(markdownFiles)('every relative link in %s leads to a file, and every anchor to a heading', (page) => {
  expect(deadLinks(page, readInRepository(page))).toEqual([]);
});

test('every path in CONTRIBUTING.md exists, and the page contains the path of every folder of lib', () => {
  const text = readInRepository('CONTRIBUTING.md');
  const paths = [...text.matchAll(/(?<=[`\s])(?:lib|functions|cli|test|local|tools|deploy)\/[\w./-]*/g)].map(
    ([name]) => name,
  );
  expect(paths.filter((name) => !existsSync(path.join(REPOSITORY, name)))).toEqual([]);
  const folders = readdirSync(path.join(REPOSITORY, 'lib')).map((folder) => `lib/${folder}`);
  expect(folders.filter((folder) => !paths.includes(folder))).toEqual([]);
});

/** Returns the relative links of a page whose file or heading does not exist. */
function deadLinks(page: string, text: string): string[] {
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !exists(page, text, link))
      .map((link) => `${page}:${index + 1}: ${link}`),
  );
}

function exists(page: string, text: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const target = path.join(REPOSITORY, path.dirname(page), file);
  if (file !== '' && !existsSync(target)) return false;
  return anchor === undefined || anchorsOf(file === '' ? text : readFileSync(target, 'utf8')).has(anchor);
}

/** Returns the anchors of GitHub for the headings of a page. */
function anchorsOf(text: string): ReadonlySet<string> {
  const withoutCode = text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '');
  const titles = [...withoutCode.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase());
  return new Set(titles.map((title) => title.replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')));
}

const texts = new Map(pages());
for (const page of ['CHANGELOG.md', 'CONTRIBUTING.md']) texts.set(page, readInRepository(page));
const kbctl = program(() => () => Promise.resolve());

test.each([...texts])('every command and option of kbctl on page %s exists', (_page, text) => {
  const lines = [...text.matchAll(/(?<=^|[\s`])(?<!^#.*)kbctl ((?!\.)[a-z-][^`|&;\n]*)(?=[`|&;\n])/gm)].map(
    ([, line = '']) => line,
  );
  expect(lines.filter((line) => !isKnown(line.split(/\s+/)))).toEqual([]);
});

function isKnown(words: readonly string[], command: Command = kbctl): boolean {
  const [word = '', ...others] = words;
  const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
  if (next !== undefined) return isKnown(others, next);
  const takesCommand = command.commands.length > 0 && !word.startsWith('-') && word !== '';
  return !takesCommand && words.every((each) => !each.startsWith('--') || hasOption(command, each));
}

function hasOption(command: Command, word: string): boolean {
  const [name] = word.split('=');
  if (name === '--help' || name === '--version') return true;
  const isHere = command.options.some(({ long }) => long === name);
  return isHere || (command.parent !== null && hasOption(command.parent, word));
}

const PRINTED =
  'ADDRESS   ENDS\n10.0.0.1   in 9m58s\n\nat http://127.0.0.1:34009/ until 2026-11-21T08:22:12.891Z\n3 seen\n';
const AT = 'at http://127.0.0.1:1/ until 2026-01-01T00:00:00Z';

test.each<[string, boolean, string[]]>([
  ['other ages, widths, ports and times', true, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT, '3 seen']],
  ['"..." in place of text, of lines and of nothing', true, ['...', '10.0.0.1  ...', '...', '3 seen', '...']],
  ['another number', false, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT, '4 seen']],
  ['another address', false, ['ADDRESS  ENDS', '10.0.0.2  in 14s', '...']],
  ['one line fewer', false, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT]],
  ['one line more', false, ['...', '3 seen', 'more']],
  ['no output', false, []],
])('for a page with %s, the comparison with the printed output returns %p', (_, isRight, page) => {
  expect(isWhatIsPrinted(PRINTED, page)).toBe(isRight);
});

test('every invocation of a function in the docs sets the format of its payload, as AWS CLI v2 requires', () => {
  const invocations = [...texts.values()].flatMap((text) => text.match(/aws lambda invoke .*--payload.*/g) ?? []);
  expect(invocations.length).toBeGreaterThan(3);
  for (const invocation of invocations) expect(invocation).toContain('--cli-binary-format raw-in-base64-out');
});

test('ADR 6 lists every counter and figure that functions write', () => {
  const declared = readInRepository('lib/telemetry/telemetry.ts').matchAll(/^ {2}\| '(\w+)'/gm);
  const listed = readInRepository('docs/adr/0006-telemetry.md');
  expect([...declared].flatMap(([, name = '']) => (listed.includes(`\`${name}`) ? [] : name))).toEqual([]);
});

test.each(generatedPages())('docs/$page is up to date: npm run docs writes it', ({ page, current, generated }) => {
  // `npm run docs` also formats the JSON.
  const parsed = (text: string) => (page.endsWith('.json') ? JSON.parse(text) : text);
  expect(parsed(generated)).toEqual(parsed(current));
});

const rows = rowsOfSecurityPage();

test('rowsOfSecurityPage returns every row of SECURITY.md that names a test', () => {
  const lines = readInRepository('SECURITY.md')
    .split('\n')
    .filter((line) => line.includes('.test.ts`'));
  expect(rows).toHaveLength(lines.length);
  expect(rows.length).toBeGreaterThan(30);
});

test.each(rows)('the test "$title" exists in $file, and test/guards/guards.txt has a guard for it', (row) => {
  expect(testFileOf(row)).toBeDefined();
  expect(GUARDS.some((guard) => isOfRow(guard, row))).toBe(true);
});

const numbered = GUARDS.map((guard, index) => ({ ...guard, number: index + 1 }));
test.each(numbered)('the code contains guard $number, and SECURITY.md lists the test of this guard', (guard) => {
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
  'in test/upstream-tests.md, every test block in the row of $upstream exists, or the row gives the reason why it lists none',
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

test('test/upstream-tests.md has one row for each integration test, with the results of the test or the reason why there are none', () => {
  const names = integrationRows().flatMap(({ pack, tests }) => tests.map((name) => `${pack}/${name}`));
  expect(names.filter((name) => !/^(controlplane|dualstack|service|servicecidr)\/Test\w+$/.test(name))).toEqual([]);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  expect(names.length).toBeGreaterThan(70);
});
