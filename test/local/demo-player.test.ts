import { describe, expect, test } from '@jest/globals';
import { playStory, type Step } from '../../local/demo-story.ts';
import type { DemoWorld } from '../../local/demo-world.ts';
import { jumpingClock } from './jumping-clock.ts';

/** The player itself touches nothing of it. */
const NO_WORLD = {} as DemoWorld;

async function played(story: readonly Step[], endMs: number): Promise<string[]> {
  const { clock, signal } = jumpingClock(endMs, 1);
  const told: string[] = [];
  const tell = (sentence: string) => void told.push(`${clock.nowMs() / 1000} ${sentence}`);
  await playStory(story, { world: NO_WORLD, clock, tell }, signal);
  return told;
}

const step = (atSeconds: number, what: string, rest: Partial<Step> = {}): Step => ({
  atSeconds,
  what,
  do: async () => undefined,
  ...rest,
});

describe('playing a story', () => {
  test('tells each step when it is done, with what came of it and what to look for', async () => {
    const story = [step(1, 'first', { do: async () => '10.0.0.7', outlook: 'look' }), step(5, 'second')];
    expect(await played(story, 6_000)).toEqual(['1 first: 10.0.0.7', '1 look', '5 second']);
  });

  test('begins anew after a pause, half as fast', async () => {
    expect(await played([step(1, 'first'), step(5, 'second')], 24_000)).toEqual([
      '1 first',
      '5 second',
      '15 first',
      '23 second',
    ]);
  });

  test('tells what could not be done, and goes on', async () => {
    const failing = step(1, 'first', { do: () => Promise.reject(new Error('it is gone')) });
    expect(await played([failing, step(2, 'second')], 3_000)).toEqual(['1 first: not done, it is gone', '2 second']);
  });

  test('does nothing more once it is to end', async () => {
    expect(await played([step(1, 'first'), step(5, 'second')], 5_000)).toEqual(['1 first']);
  });
});
