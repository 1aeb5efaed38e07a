import { describe, expect, test } from '@jest/globals';
import { pages } from '../support/console-blocks.ts';
import { testPage } from './play-page.ts';
import { STORIES } from './task-stories.ts';

const FOLDER = 'docs/tasks/';
const INDEX = `${FOLDER}README.md`;
const texts = pages();
const tasks = [...texts].filter(([page]) => page.startsWith(FOLDER) && page !== INDEX);

test('each task page has a test script, and each script has a page', () => {
  expect(tasks.map(([page]) => page.slice(FOLDER.length)).sort()).toEqual(Object.keys(STORIES).sort());
});

test('the index links to every page', () => {
  const named = [...(texts.get(INDEX) ?? '').matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, page]) => page);
  expect(named.toSorted()).toEqual(Object.keys(STORIES).sort());
});

describe.each(Object.entries(STORIES))('docs/tasks/%s', (file, story) => {
  const page = `${FOLDER}${file}`;
  testPage(page, texts.get(page) ?? '', story);
});
