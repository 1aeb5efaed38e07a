import { afterEach } from '@jest/globals';

const ends: (() => unknown)[] = [];

/** Calls a function after the current test. Several functions are called in reverse order. */
export function afterThisTest(end: () => unknown): void {
  ends.push(end);
}

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
