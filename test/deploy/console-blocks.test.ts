import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ConsoleBlock, consoleBlocks, fencedBlocks, pages, showsThat } from '../support/console-blocks.ts';
import { startWorld, type World } from './world.ts';

const texts = pages(join(import.meta.dirname, '../..'));
/** These have worlds of their own: test/docs. */
const ELSEWHERE = /^(?:README\.md|docs\/allocating\.md|docs\/tasks\/.*)$/;
const blocks: ConsoleBlock[] = [...texts]
  .filter(([page]) => !ELSEWHERE.test(page))
  .flatMap(([page, text]) => consoleBlocks(page, text));

/** What a reader is to copy or look at without running it here, and what is a file and no command. */
const NOT_RUN = new Set(['text', 'yaml', 'json', 'hcl']);

let world: World | undefined;

beforeAll(async () => {
  if (blocks.length > 0) world = await startWorld();
});
afterAll(() => world?.stop());

test('every fenced block of the pages has a language', () => {
  for (const [page, text] of texts) {
    const languages = fencedBlocks(text).map(({ language }) => language);
    const unknown = languages.filter((language) => language !== 'console' && !NOT_RUN.has(language));
    expect({ page, unknown }).toEqual({ page, unknown: [] });
  }
});

/* In the order of the pages, in one copy of the project: a page begins with nothing deployed, and each block continues from the one before. */
test('every console block of the pages prints what the page shows', async () => {
  for (const { commands } of blocks) {
    for (const { at, command, output } of commands) {
      const ran = await world?.project.run(command);
      const isAsSaid = ran?.code === 0 && showsThat(ran.output, output);
      expect({ at, command, ...(!isAsSaid && { ...ran, expected: output }) }).toEqual({ at, command });
    }
  }
});
