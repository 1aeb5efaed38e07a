import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY, readInRepository } from '../support/repository.ts';

const pages = ['', 'docs', 'docs/adr', 'docs/tasks', 'test'].flatMap((folder) =>
  readdirSync(path.join(REPOSITORY, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join(folder, file)),
);

test.each(pages)('every relative link in %s leads to a file, and every anchor to a heading', (page) => {
  expect(deadLinks(page, readInRepository(page))).toEqual([]);
});

test('every path in CONTRIBUTING.md exists, and its diagram contains every folder of lib', () => {
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
  const titles = [...withoutCode.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
