import type { RunnerClock } from './clock-driven-runner.ts';
import type { Step } from './demo-story.ts';
import type { DemoWorld } from './demo-world.ts';

/** Between the end of the story and its beginning. */
const PAUSE_SECONDS = 8;

/** The first time it is told as it is written; whoever still looks then has time. */
const LATER_PACE = 2;

export interface Stage {
  readonly world: DemoWorld;
  readonly clock: RunnerClock;
  /** Takes what happens, and what to look for, each as a sentence. */
  readonly tell: (sentence: string, kind: 'deed' | 'outlook') => void;
}

/** Plays the story again and again until the signal aborts. What cannot be done is told, and the story goes on. */
export async function playStory(
  story: readonly Step[],
  { world, clock, tell }: Stage,
  signal: AbortSignal,
): Promise<void> {
  for (let pace = 1; !signal.aborted; pace = LATER_PACE) {
    const beganMs = clock.nowMs();
    for (const step of story) {
      await clock.sleepUntil(beganMs + step.atSeconds * 1000 * pace, signal);
      if (signal.aborted) return;
      tell(await deed(step, world), 'deed');
      if (step.outlook !== undefined) tell(step.outlook, 'outlook');
    }
    await clock.sleepUntil(clock.nowMs() + PAUSE_SECONDS * 1000, signal);
  }
}

async function deed({ what, do: act }: Step, world: DemoWorld): Promise<string> {
  try {
    const facts = await act(world);
    return facts === undefined ? what : `${what}: ${facts}`;
  } catch (error) {
    // Somebody else may have changed the cluster meanwhile.
    return `${what}: not done, ${error instanceof Error ? error.message : String(error)}`;
  }
}
