import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { commandsOf, type FencedBlock, fencedBlocks, isWhatIsPrinted } from '../support/console-blocks.ts';
import { runningTableServer } from '../support/running-table-server.ts';
import { openTaskWorld, type TaskWorld } from './task-world.ts';

export type Action = (world: TaskWorld) => unknown;

export interface Story {
  /** Puts the cluster into the state at the beginning of the page. */
  readonly begins: Action;
  /** The effects of lines that the test does not run, such as `kubectl` and flags of API servers. */
  readonly elsewhere?: Readonly<Record<string, Action>>;
  /** The events after a command, by the command. */
  readonly after?: Readonly<Record<string, Action>>;
  /** The random part of a command's output, by the command. */
  readonly random?: Readonly<Record<string, RegExp>>;
}

/** Defines the tests of a page with a story. */
export function testPage(page: string, text: string, story: Story): void {
  const server = runningTableServer();
  let world: TaskWorld;

  beforeAll(async () => {
    world = await openTaskWorld(server.endpoint);
    await story.begins(world);
  });

  afterAll(async () => {
    await world?.close();
  });

  test('every command on the page prints the output that the page shows', async () => {
    const blocks = fencedBlocks(text);
    expect(blocks).not.toEqual([]);
    for (const block of blocks) {
      if (block.language === 'console') await run(page, block, story, world);
      else if (block.language === 'text') await act(page, block, story, world);
    }
  });

  test('the page contains every command of its test script', () => {
    const commands = Object.keys({ ...story.elsewhere, ...story.after, ...story.random });
    expect(commands.filter((command) => !text.includes(command))).toEqual([]);
  });
}

async function run(
  page: string,
  { line, lines }: FencedBlock,
  { after, random: randomOf }: Story,
  world: TaskWorld,
): Promise<void> {
  for (const { at, command, output } of commandsOf(page, line, lines)) {
    const ran = await world.run(command);
    const random = randomOf?.[command];
    const known = (text: string) => (random === undefined ? text : text.replace(random, 'random'));
    const isAsShown = ran.code <= 1 && isWhatIsPrinted(known(ran.output), output.map(known));
    expect({ at, command, ...(!isAsShown && { ...ran, expected: output.join('\n') }) }).toEqual({ at, command });
    await after?.[command]?.(world);
  }
}

async function act(page: string, { line, lines }: FencedBlock, { elsewhere }: Story, world: TaskWorld): Promise<void> {
  for (const command of lines) {
    const action = elsewhere?.[command];
    expect({ at: `${page}:${line}`, command, isKnown: action !== undefined }).toMatchObject({ isKnown: true });
    await action?.(world);
  }
}
