import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { instrumented, mutantsOf } from './plan.ts';
import type { Block, CollectedTest } from './test-globals.ts';

/* Loads the tests of one module once, and runs those that reach a mutant with that mutant switched on, one mutant after another. */

/** What the parent sends: `fixed` is on from the start, as code that runs while modules load needs. */
export interface Task {
  readonly module: string;
  readonly testFiles: readonly string[];
  readonly mutants: readonly number[];
  readonly fixed?: number;
}

export type Message =
  | {
      readonly type: 'ready';
      readonly unloaded: readonly string[];
      readonly failing: readonly string[];
      readonly static: readonly number[];
    }
  | { readonly type: 'begins'; readonly mutant: number }
  | { readonly type: 'verdict'; readonly mutant: number; readonly verdict: 'killed' | 'survived' | 'unreached' };

const TEST_MS = 10_000;
/** A slower test does not run for every mutant. */
const SLOW_MS = 3_000;

const send = (message: Message) =>
  new Promise<void>((done) => void process.send?.(message, undefined, {}, () => done()));

let active: number | undefined;
let reached = new Set<number>();
Object.assign(globalThis, {
  __mutant: (id: number) => {
    reached.add(id);
    return id === active;
  },
});

process.on('unhandledRejection', () => {});
process.once('message', (task: Task) => {
  work(task).then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function work({ module, testFiles, mutants, fixed }: Task): Promise<void> {
  active = fixed;
  // That a property fails is enough: the smallest example would take most of the time.
  fc.configureGlobal({ endOnFailure: true });
  hook(module);
  const { collected, loading } = await import('./test-globals.ts');
  const unloaded: string[] = [];
  for (const file of testFiles) {
    loading.file = file;
    await import(pathToFileURL(file).href).catch(() => unloaded.push(file));
  }
  const atLoad = reached;
  if (fixed !== undefined) return judge(fixed, collected, false);

  const reach = new Map<CollectedTest, { readonly mutants: ReadonlySet<number>; readonly ms: number }>();
  const failing: string[] = [];
  for (const test of collected) {
    reached = new Set();
    const began = performance.now();
    const failure = await firstFailure([test]);
    const ms = performance.now() - began;
    if (failure !== undefined) failing.push(`${test.file}: ${test.name}`);
    else if (ms < SLOW_MS) reach.set(test, { mutants: reached, ms });
  }
  await send({ type: 'ready', unloaded, failing, static: [...atLoad] });
  for (const mutant of mutants) {
    if (atLoad.has(mutant)) continue;
    const tests = [...reach].filter(([, found]) => found.mutants.has(mutant)).sort(([, a], [, b]) => a.ms - b.ms);
    await judge(
      mutant,
      tests.map(([test]) => test),
    );
  }
}

/** @param mayRepeat the mutant can be switched off again: it is not in code that ran while modules loaded */
async function judge(mutant: number, tests: readonly CollectedTest[], mayRepeat = true): Promise<void> {
  if (tests.length === 0) return send({ type: 'verdict', mutant, verdict: 'unreached' });
  await send({ type: 'begins', mutant });
  active = mutant;
  const by = await firstFailure(tests);
  active = undefined;
  // What fails without the mutant, too, has not noticed it.
  const isNoticed = by !== undefined && (!mayRepeat || (await firstFailure([by])) === undefined);
  if (by !== undefined && !isNoticed)
    return judge(
      mutant,
      tests.filter((test) => test !== by),
      mayRepeat,
    );
  await send({ type: 'verdict', mutant, verdict: isNoticed ? 'killed' : 'survived' });
}

function hook(module: string): void {
  const globals = new URL('test-globals.ts', import.meta.url).href;
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === '@jest/globals' ? { url: globals, shortCircuit: true } : next(specifier, context),
    load: (url, context, next) => {
      if (url !== pathToFileURL(module).href) return next(url, context);
      const source = instrumented(readFileSync(module, 'utf8'), mutantsOf(module));
      return { format: 'module-typescript', source, shortCircuit: true };
    },
  });
}

/** Runs tests until one fails, each block's own steps around those of it. Returns that test. */
async function firstFailure(tests: readonly CollectedTest[]): Promise<CollectedTest | undefined> {
  for (const test of tests) {
    const chain = chainOf(test.block);
    try {
      await inTime(async () => {
        for (const each of chain) for (const step of each.beforeAll) await step();
        for (const each of chain) for (const step of each.beforeEach) await step();
        await test.run();
      });
    } catch {
      return test;
    } finally {
      const steps = chain.toReversed().flatMap((each) => [...each.afterEach, ...each.afterAll]);
      for (const step of steps) await inTime(async () => step()).catch(() => undefined);
    }
  }
  return undefined;
}

function chainOf(block: Block): Block[] {
  return block.parent === undefined ? [block] : [...chainOf(block.parent), block];
}

async function inTime(step: () => Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => over.reject(new Error('the test took too long')), TEST_MS);
  await Promise.race([step(), over.promise]).finally(() => clearTimeout(timer));
}
