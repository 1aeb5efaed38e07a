import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { fencedBlocks, pages } from '../support/console-blocks.ts';
import { playBlock } from './play-page.ts';
import { STORIES } from './task-stories.ts';
import { openTaskWorld, type TaskWorld } from './task-world.ts';

const FOLDER = 'docs/tasks/';
const INDEX = `${FOLDER}README.md`;
const texts = pages(join(import.meta.dirname, '../..'));
const tasks = [...texts].filter(([page]) => page.startsWith(FOLDER) && page !== INDEX);

let server: TableServer;

beforeAll(async () => {
  server = await startTableServer({ key: 'test' });
});

afterAll(async () => {
  await server.close();
});

test('each task page has a story, and each story has a page', () => {
  expect(tasks.map(([page]) => page.slice(FOLDER.length)).sort()).toEqual(Object.keys(STORIES).sort());
});

test('the index names every page', () => {
  const named = [...(texts.get(INDEX) ?? '').matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, page]) => page);
  expect(named.toSorted()).toEqual(Object.keys(STORIES).sort());
});

describe.each(Object.entries(STORIES))('docs/tasks/%s', (page, story) => {
  let world: TaskWorld;

  beforeAll(async () => {
    world = await openTaskWorld(server.endpoint);
    await story.begins(world);
  });

  afterAll(async () => {
    await world?.close();
  });

  test('every command prints the output on the page', async () => {
    const path = `${FOLDER}${page}`;
    const blocks = fencedBlocks(texts.get(path) ?? '');
    expect(blocks).not.toEqual([]);
    for (const block of blocks) await playBlock(path, block, story, world);
  });

  test('the page contains every command of its story', () => {
    const text = texts.get(`${FOLDER}${page}`) ?? '';
    const commands = [...Object.keys(story.elsewhere ?? {}), ...Object.keys(story.after ?? {})];
    expect(commands.filter((command) => !text.includes(command))).toEqual([]);
  });
});
