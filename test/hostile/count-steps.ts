import { Session } from 'node:inspector/promises';
import { pathToFileURL } from 'node:url';

/*
 * A script for Node.js: `count-steps.ts <file with SCENARIOS> <n>`. It prints how many steps each scenario takes with n and with
 * 2 n. A step is one run of a function or block of lib/ or of that file, or one element that a built-in function visits.
 */

/** Scenarios by name. Each creates its input for n, and returns a function, whose steps are counted. */
export type Scenarios = Readonly<Record<string, (n: number) => () => unknown>>;

let walked = 0;

/** Methods that visit the elements of a list without calling a function for each, so that V8 does not count these steps. */
const WALKS = 'includes indexOf lastIndexOf slice concat splice join sort toSorted values entries'.split(' ');

function countWalks(prototype: object, names: readonly PropertyKey[], sizeOf: (list: never) => number): void {
  for (const name of names) {
    const original: unknown = Reflect.get(prototype, name);
    if (typeof original !== 'function') continue;
    const value = function (this: never, ...given: readonly unknown[]): unknown {
      walked += sizeOf(this);
      return Reflect.apply(original, this, given);
    };
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  }
}

const [file = '', text = ''] = process.argv.slice(2);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

async function stepsTaken(): Promise<number> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const counted = result.filter(({ url }) => url.includes('/lib/') || url.endsWith(file));
  const ranges = counted.flatMap(({ functions }) => functions.flatMap((each) => each.ranges));
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

const { SCENARIOS }: { SCENARIOS: Scenarios } = await import(pathToFileURL(file).href);
const n = Number(text);
for (const prepare of Object.values(SCENARIOS)) await prepare(10)();
countWalks(Array.prototype, [...WALKS, Symbol.iterator], (list: unknown[]) => list.length);
const steps: Record<string, readonly number[]> = {};
for (const [name, prepare] of Object.entries(SCENARIOS)) {
  const counts: number[] = [];
  for (const size of [n, 2 * n]) {
    const work = prepare(size);
    await stepsTaken();
    walked = 0;
    await work();
    const walkedBySize = walked;
    counts.push((await stepsTaken()) + walkedBySize);
  }
  steps[name] = counts;
}
process.stdout.write(JSON.stringify(steps));
