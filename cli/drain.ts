import { setTimeout as sleep } from 'node:timers/promises';
import type { Cli } from './cli.ts';

/** Waits for connections to an address that is out of the endpoints; counts down on a terminal. @returns whether the time was over, and nobody ended it before. */
export async function drainFor(cli: Cli, address: string, drainMs: number): Promise<boolean> {
  const endsAtMs = performance.now() + drainMs;
  const leftMs = () => endsAtMs - performance.now();
  const text = () => `${address} is out: ${Math.ceil(leftMs() / 1000)}s more for connections that are open`;
  if (cli.output.terminal.err.isTTY !== true) cli.output.say(text());
  const progress = cli.progress(text());
  try {
    while (leftMs() > 0 && !cli.signal.aborted) {
      progress.tell(text());
      await sleep(Math.min(1_000, leftMs()), undefined, { signal: cli.signal }).catch(() => undefined);
    }
  } finally {
    progress.end();
  }
  if (!cli.signal.aborted) return true;
  cli.output.say('Not waited for any longer: connections may still be open.');
  return false;
}
