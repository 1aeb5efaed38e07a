import { afterEach } from '@jest/globals';

const ends: (() => unknown)[] = [];

/** Calls a function after the current test. What began last ends first. */
export function afterThisTest(end: () => unknown): void {
  ends.push(end);
}

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
