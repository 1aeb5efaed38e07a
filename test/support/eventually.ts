import { setTimeout as sleep } from 'node:timers/promises';

/** This is shorter than the time limit of a test, which is three minutes. */
const TIMEOUT_MS = 150_000;

/** Repeats `check` until it no longer throws, for effects of other processes. @throws the last error after 2.5 minutes */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await sleep(100);
  }
}
