import { expect, test } from '@jest/globals';
import { playStory, type StoryEvent } from '../../local/demo.ts';
import type { EmbeddedWorld } from '../../local/local-cluster.ts';
import { jumpingClock } from './jumping-clock.ts';

test('the demo prints each event with its result and what to watch for, reports an event that fails, and stops after the last event', async () => {
  const { clock, signal } = jumpingClock(9_000, 1);
  const lines: string[] = [];
  const print = (sentence: string) => void lines.push(`${clock.nowMs() / 1000} ${sentence}`);
  const event = (atSeconds: number, act: StoryEvent['act']) => ({
    atSeconds,
    what: `event ${atSeconds}`,
    act,
    outlook: 'look',
  });
  const fails = () => Promise.reject(new Error('it is gone'));
  // `playStory` only passes the world to events, and these events do not use it.
  const stage = { world: {} as EmbeddedWorld, clock, print };
  await playStory([event(1, async () => '10.0.0.7'), event(5, fails), event(9, fails)], stage, signal);
  expect(lines).toEqual(['1 event 1: 10.0.0.7', '1 look', '5 event 5: not done, it is gone', '5 look']);
});
