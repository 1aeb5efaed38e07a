import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const folder = import.meta.dirname;
/**
 * The number of entries. With twice as many (500), a loop of n log n steps takes 2.25 times as many steps, and a loop of n² steps
 * takes four times as many.
 */
const N = 250;
const MOST_GROWTH = 2.5;

/** Returns the factor by which the steps of each scenario grow if the number of entries is doubled. */
function growthIn(file: string): [name: string, growth: number][] {
  const counter = path.join(folder, 'count-steps.ts');
  const printed = execFileSync(
    process.execPath,
    // The options turn off V8's optimisation, because V8 does not count calls of functions that it inlines, and inlines at
    // different moments in each run.
    ['--no-opt', '--no-maglev', '--disable-warning=ExperimentalWarning', counter, path.join(folder, file), String(N)],
    { encoding: 'utf8' },
  );
  const steps: Readonly<Record<string, readonly [number, number]>> = JSON.parse(printed);
  return Object.entries(steps).map(([name, [before, after]]) => [name, after / before]);
}

const slow = (growths: readonly [name: string, growth: number][]) =>
  growths.filter(([, growth]) => growth > MOST_GROWTH).map(([name]) => name);

test('if every list in an object has n entries, the number of steps of a pass grows at most with n log n', () => {
  const growths = growthIn('passes-at-bounds.ts');
  expect(growths.length).toBeGreaterThan(5);
  expect(slow(growths)).toEqual([]);
});
