import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const folder = import.meta.dirname;
/** With twice as many entries, a walk in n log n takes 2.25 times the steps from 250 on, and one in n² four times. */
const N = 250;
const MOST_GROWTH = 2.5;

/** How many times as many steps each scenario of the file takes with 2 n entries as with n. */
function growthIn(file: string): [name: string, growth: number][] {
  const counter = path.join(folder, 'count-steps.ts');
  const printed = execFileSync(
    process.execPath,
    // Code that V8 optimises loses counts of the functions that it inlines, at moments that no run shares with another.
    ['--no-opt', '--no-maglev', '--disable-warning=ExperimentalWarning', counter, path.join(folder, file), String(N)],
    { encoding: 'utf8' },
  );
  const steps: Readonly<Record<string, readonly [number, number]>> = JSON.parse(printed);
  return Object.entries(steps).map(([name, [before, after]]) => [name, after / before]);
}

const slow = (growths: readonly [name: string, growth: number][]) =>
  growths.filter(([, growth]) => growth > MOST_GROWTH).map(([name]) => name);

test('the counter of steps finds a walk that costs the product of two lists', () => {
  expect(slow(growthIn('planted-loops.ts'))).toEqual([
    'a loop within a loop',
    'a search of a list for each element of another',
    'a list that is copied for each element',
  ]);
});

test('a pass over objects with n entries in every list takes at most n log n steps', () => {
  const growths = growthIn('passes-at-bounds.ts');
  expect(growths.length).toBeGreaterThan(5);
  expect(slow(growths)).toEqual([]);
});
