import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `check` again and again until it no longer throws, for what another process does in its own time.
 * @throws what `check` threw last when `timeoutMs` are over. By default 2.5 minutes: a test as a whole has three.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 150_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await sleep(100);
  }
}
