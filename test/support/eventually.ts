import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Repeats `check` until it no longer throws, for effects of other processes.
 * @throws the last error of `check` after `timeoutMs`. Default: 2.5 minutes, because a test may take three
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
