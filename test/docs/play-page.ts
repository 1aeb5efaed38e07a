import { expect } from '@jest/globals';
import { commandsOf, type FencedBlock, isWhatIsPrinted } from '../support/console-blocks.ts';
import type { TaskWorld } from '../support/task-world.ts';

export type Deed = (world: TaskWorld) => unknown;

/** What happens to the cluster while somebody does what a page says. */
export interface Story {
  /** How it came to what the page is for. */
  readonly begins: Deed;
  /** What a line does that is not run here, by the line: `kubectl`, flags of API servers. */
  readonly elsewhere?: Readonly<Record<string, Deed>>;
  /** What the cluster comes to when a command was run, by the command. */
  readonly after?: Readonly<Record<string, Deed>>;
  /** What was given at random: what a command prints of that is as it comes. By the command. */
  readonly given?: Readonly<Record<string, RegExp>>;
}

/** Runs what a page shows at a prompt, and does what it says is to be done elsewhere. Other blocks are passed over. */
export async function playBlock(page: string, block: FencedBlock, story: Story, world: TaskWorld): Promise<void> {
  if (block.language === 'console') await run(page, block, story, world);
  else if (block.language === 'text') await act(page, block, story, world);
}

async function run(
  page: string,
  { line, lines }: FencedBlock,
  { after, given }: Story,
  world: TaskWorld,
): Promise<void> {
  for (const { at, command, output } of commandsOf(page, line, lines)) {
    const ran = await world.run(command);
    const random = given?.[command];
    const known = (text: string) => (random === undefined ? text : text.replace(random, 'given'));
    const isAsSaid = ran.code <= 1 && isWhatIsPrinted(known(ran.output), output.map(known));
    expect({ at, command, ...(!isAsSaid && { ...ran, expected: output.join('\n') }) }).toEqual({ at, command });
    await after?.[command]?.(world);
  }
}

/** What is to be run at another place, or only to be looked at. */
async function act(page: string, { line, lines }: FencedBlock, { elsewhere }: Story, world: TaskWorld): Promise<void> {
  for (const command of lines) {
    const deed = elsewhere?.[command];
    expect({ at: `${page}:${line}`, command, isTold: deed !== undefined }).toMatchObject({ isTold: true });
    await deed?.(world);
  }
}
