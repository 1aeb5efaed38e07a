import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { instrumented } from './plan.ts';
import { afterEveryTest, type Block, type CollectedTest, testsOf } from './test-globals.ts';

/*
 * Loads the tests of some modules once, with all mutants switched off, and notes which tests reach which mutants. Then switches
 * on one mutant after another, and runs the tests that reach it. If a mutant is in code that runs while modules load, loads the
 * project's modules again.
 */

export interface MutatedModule {
  readonly file: string;
  readonly firstId: number;
  readonly testFiles: readonly string[];
  /** The numbers of the mutants without a verdict. */
  readonly open: readonly number[];
}

/** Shows that the worker is alive. If a worker begins a mutant and ends before its next message, the mutant ended the worker. */
export interface Message {
  readonly begins?: number;
  readonly verdict?: readonly [mutant: number, verdict: MutantVerdict];
}

export type MutantVerdict = 'killed' | 'survived' | 'unreached';

/** A test, with the measurements of a run without a mutant. */
interface Measured {
  readonly test: CollectedTest;
  readonly reached: ReadonlySet<number>;
  readonly evaluations: number;
  readonly cpuMs: number;
}

const ROOT = path.join(import.meta.dirname, '../..');
const TEST_MS = 20_000;
/** A test that takes this CPU time or more without a mutant does not run for mutants. */
const SLOW_CPU_MS = 1_000;
const MOST_CPU_MS = 5_000;
/**
 * If a test evaluates more than `ALWAYS_ALLOWED` plus this multiple of the expressions that it evaluates without a mutant, the
 * mutant has caused an endless loop, and counts as detected.
 */
const ENDLESS = 20;
const ALWAYS_ALLOWED = 10_000;

const send = (message: Message) =>
  new Promise<void>((done) => void process.send?.(message, undefined, {}, () => done()));

let active: number | undefined;
let reached = new Set<number>();
let [evaluations, allowed] = [0, 0];
/** A number in the URL of each module. After a change of this number, modules are loaded again. */
let generation = 0;
Object.assign(globalThis, {
  __mutant: (id: number) => {
    evaluations += 1;
    if (active === undefined) reached.add(id);
    else if (evaluations > allowed) throw new Error('the mutant made a loop endless');
    return id === active;
  },
});

process.on('unhandledRejection', () => {});
// A test fails if its code throws uncaught.
let endStep: (error: unknown) => void = () => {};
process.on('uncaughtException', (error) => endStep(error));
process.once('message', (modules: readonly MutatedModule[]) => {
  work(modules).then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function work(modules: readonly MutatedModule[]): Promise<void> {
  // A failing property is enough: shrinking would take most of the time.
  fc.configureGlobal({ endOnFailure: true, seed: 1 });
  hook(modules);
  const tests: CollectedTest[] = [];
  for (const file of new Set(modules.flatMap(({ testFiles }) => testFiles))) {
    await load(file).then(
      (found) => tests.push(...found),
      (error) => console.error(`not loaded: ${file}: ${error}`),
    );
  }
  const atLoad = reached;

  const measured: Measured[] = [];
  for (const test of tests) {
    const each = await measure(test);
    if (each === undefined) console.error(`fails without a mutant: ${test.file} ${test.id}`);
    else if (each.cpuMs < SLOW_CPU_MS) measured.push(each);
    await send({});
  }
  for (const { open, testFiles } of modules) {
    const near = measured.filter(({ test }) => testFiles.includes(test.file));
    for (const mutant of open) {
      const isAtLoad = atLoad.has(mutant);
      await judge(mutant, isAtLoad ? near : near.filter((each) => each.reached.has(mutant)), isAtLoad);
    }
  }
}

/** Returns the tests of a file. Loads them again, with the modules that they import, if `generation` has changed. */
function load(file: string): Promise<readonly CollectedTest[]> {
  return testsOf(file, () => import(`${pathToFileURL(file).href}?generation=${generation}`));
}

/** Runs a test without a mutant and measures it. Returns undefined if the test fails. */
async function measure(test: CollectedTest): Promise<Measured | undefined> {
  [reached, evaluations] = [new Set(), 0];
  const before = process.cpuUsage();
  if (!(await passes(test))) return undefined;
  const { user, system } = process.cpuUsage(before);
  return { test, reached, evaluations, cpuMs: (user + system) / 1000 };
}

async function judge(mutant: number, candidates: readonly Measured[], isAtLoad: boolean): Promise<void> {
  if (candidates.length === 0) return send({ verdict: [mutant, 'unreached'] });
  await send({ begins: mutant });
  const isNoticed = await isNoticedBy(mutant, affordable(candidates), isAtLoad);
  active = undefined;
  await send({ verdict: [mutant, isNoticed ? 'killed' : 'survived'] });
}

/** Returns the fastest tests, as many as fit into the CPU time limit. */
function affordable(candidates: readonly Measured[]): readonly Measured[] {
  let sumMs = 0;
  return candidates
    .toSorted((a, b) => a.cpuMs - b.cpuMs)
    .filter(({ cpuMs }) => {
      sumMs += cpuMs;
      return sumMs <= MOST_CPU_MS;
    });
}

/** @param isAtLoad true if the mutant is in code that runs while modules load: then the modules are loaded again */
async function isNoticedBy(mutant: number, candidates: readonly Measured[], isAtLoad: boolean): Promise<boolean> {
  generation += 1;
  const reloaded = new Map<string, readonly CollectedTest[] | undefined>();
  for (const each of candidates) {
    const { file, id } = each.test;
    [active, evaluations, allowed] = [mutant, 0, ALWAYS_ALLOWED * ENDLESS];
    if (isAtLoad && !reloaded.has(file)) reloaded.set(file, await load(file).catch(() => undefined));
    const test = isAtLoad ? reloaded.get(file)?.find((one) => one.id === id) : each.test;
    [evaluations, allowed] = [0, each.evaluations * ENDLESS + ALWAYS_ALLOWED];
    if (test !== undefined && (await passes(test))) continue;
    active = undefined;
    // A test that also fails without the mutant has not detected the mutant.
    if (await passes(each.test)) return true;
  }
  return false;
}

function hook(modules: readonly MutatedModule[]): void {
  const globals = new URL('test-globals.ts', import.meta.url).href;
  const firstIds = new Map(modules.map(({ file, firstId }) => [file, firstId]));
  const sources = new Map<string, string>();
  const sourceOf = (file: string) => {
    const firstId = firstIds.get(file);
    return stripTypeScriptTypes(firstId === undefined ? readFileSync(file, 'utf8') : instrumented(file, firstId));
  };
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === '@jest/globals') return { url: globals, shortCircuit: true };
      const resolved = next(specifier, context);
      return isReloaded(resolved.url)
        ? { ...resolved, url: `${bare(resolved.url)}?generation=${generation}` }
        : resolved;
    },
    load: (url, context, next) => {
      if (!isReloaded(url)) return next(url, context);
      const file = fileURLToPath(bare(url));
      const source = sources.get(file) ?? sourceOf(file);
      sources.set(file, source);
      return { format: 'module', source, shortCircuit: true };
    },
  });
}

const bare = (url: string) => url.replace(/\?.*$/, '');

function isReloaded(url: string): boolean {
  if (!url.startsWith('file:') || !bare(url).endsWith('.ts')) return false;
  const file = path.relative(ROOT, fileURLToPath(bare(url)));
  return !/^(?:\.\.|node_modules|tools\/mutants)/.test(file);
}

/** Runs a test with the before and after steps of its blocks, and returns whether it passes. */
async function passes(test: CollectedTest): Promise<boolean> {
  const chain = chainOf(test.block);
  try {
    await inTime(async () => {
      for (const each of chain) for (const step of each.beforeAll) await step();
      for (const each of chain) for (const step of each.beforeEach) await step();
      await test.run();
    });
    return true;
  } catch {
    return false;
  } finally {
    const steps = chain.toReversed().flatMap((each) => [...each.afterEach, ...each.afterAll]);
    for (const step of [...steps, ...afterEveryTest]) await inTime(async () => step()).catch(() => undefined);
  }
}

function chainOf(block: Block): Block[] {
  return block.parent === undefined ? [block] : [...chainOf(block.parent), block];
}

async function inTime(step: () => Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<never>();
  endStep = over.reject;
  const timer = setTimeout(() => over.reject(new Error('the test took too long')), TEST_MS);
  await Promise.race([step(), over.promise]).finally(() => clearTimeout(timer));
}
