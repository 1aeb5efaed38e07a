import { expect, test } from '@jest/globals';
import { consoleCommands, fencedBlocks, pages, showsThat } from '../support/console-blocks.ts';
import { running } from '../support/running.ts';
import { startWorld } from './world.ts';

const texts = pages();
/** The pages that the tests in test/docs cover. */
const ELSEWHERE = /^(?:README\.md|docs\/allocating\.md|docs\/tasks\/.*)$/;
const commands = [...texts].flatMap(([page, text]) => (ELSEWHERE.test(page) ? [] : consoleCommands(page, text)));

/** The languages of blocks that the test does not run: text to read, and contents of files. */
const NOT_RUN = new Set(['text', 'yaml', 'json', 'hcl']);

const world = running(startWorld);

test('every fenced block of the pages has a language', () => {
  for (const [page, text] of texts) {
    const languages = fencedBlocks(text).map(({ language }) => language);
    const unknown = languages.filter((language) => language !== 'console' && !NOT_RUN.has(language));
    expect({ page, unknown }).toEqual({ page, unknown: [] });
  }
});

/*
 * Runs all blocks in order in a copy of the project. At the beginning of each page, no stack is deployed. Each block continues
 * from the state that the previous block of its page left.
 */
test('the commands in every console block print the output that the page shows', async () => {
  for (const { at, command, output } of commands) {
    const ran = await world.project.run(command);
    const isAsShown = ran.code === 0 && showsThat(ran.output, output);
    expect({ at, command, ...(!isAsShown && { ...ran, expected: output }) }).toEqual({ at, command });
  }
});
