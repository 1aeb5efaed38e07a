import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { instrumented, mutantsOf } from './plan.ts';
import { afterEveryTest, type Block, type CollectedTest, testsOf } from './test-globals.ts';

/*
 * Loads the tests of some modules once, with all mutants switched off, and notes which tests reach which mutants. Then switches
 * on one mutant after another, and runs the tests that reach it. If a mutant is in code that runs while modules load, loads the
 * project's modules again.
 */

export interface Task {
  readonly modules: readonly MutatedModule[];
  /** The numbers of the mutants without a verdict. */
  readonly open: readonly number[];
}

export interface MutatedModule {
  readonly file: string;
  readonly firstId: number;
  readonly mutants: number;
  readonly testFiles: readonly string[];
}

export type Message =
  | { readonly type: 'alive' }
  | { readonly type: 'ready'; readonly unloaded: readonly string[]; readonly failing: readonly string[] }
  | { readonly type: 'begins'; readonly mutant: number }
  | { readonly type: 'verdict'; readonly mutant: number; readonly verdict: MutantVerdict };

export type MutantVerdict = 'killed' | 'survived' | 'unreached';

/** A test, and what was measured while it ran without a mutant. */
interface Measured {
  readonly test: CollectedTest;
  /** The id of the test, which is the same in every load. */
  readonly id: string;
  readonly reached: ReadonlySet<number>;
  readonly evaluations: number;
  readonly cpuMs: number;
  kills: number;
}

const ROOT = path.join(import.meta.dirname, '../..');
const TEST_MS = 20_000;
/** A test that takes this CPU time or more without a mutant does not run for mutants. */
const SLOW_CPU_MS = 1_000;
const MOST_CPU_MS = 5_000;
/** The number of test files that are reloaded first. The other files are reloaded only if the mutant survives. */
const FIRST_RELOADED = 6;
/**
 * If a test evaluates more than this multiple of the expressions that it evaluates without a mutant, the mutant has caused an
 * endless loop, and counts as detected.
 */
const ENDLESS = 20;
const ALWAYS_ALLOWED = 10_000;

const send = (message: Message) =>
  new Promise<void>((done) => void process.send?.(message, undefined, {}, () => done()));

let active: number | undefined;
let reached = new Set<number>();
let [evaluations, allowed] = [0, 0];
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
process.once('message', (task: Task) => {
  work(task).then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function work({ modules, open }: Task): Promise<void> {
  // A failing property is enough: shrinking would take most of the time.
  fc.configureGlobal({ endOnFailure: true, seed: 1 });
  hook(modules);
  const unloaded: string[] = [];
  const tests = await load(new Set(modules.flatMap(({ testFiles }) => testFiles)), (file, why) => {
    unloaded.push(file);
    console.error(`not loaded: ${path.relative(ROOT, file)}: ${why}`);
  });
  const atLoad = reached;

  const failing: string[] = [];
  const measured: Measured[] = [];
  for (const [id, test] of tests) {
    const each = await measure(test, id);
    if (each === undefined) failing.push(id);
    else if (each.cpuMs < SLOW_CPU_MS) measured.push(each);
    await send({ type: 'alive' });
  }
  await send({ type: 'ready', unloaded, failing });
  for (const { firstId, mutants, testFiles } of modules) {
    const own = open.filter((id) => id >= firstId && id < firstId + mutants);
    const isOfFiles = (files: readonly string[]) => measured.filter(({ test }) => files.includes(test.file));
    const near = isOfFiles(testFiles);
    for (const mutant of own.filter((id) => !atLoad.has(id))) {
      const candidates = near.filter((each) => each.reached.has(mutant));
      await judge(mutant, [{ candidates, loadTests: () => Promise.resolve(tests) }]);
    }
    const loadable = testFiles.filter((file) => !unloaded.includes(file));
    const reloads = [loadable.slice(0, FIRST_RELOADED), loadable.slice(FIRST_RELOADED)];
    const parts = reloads.map((files) => ({ candidates: isOfFiles(files), loadTests: () => load(files) }));
    for (const mutant of own.filter((id) => atLoad.has(id))) await judge(mutant, parts);
  }
}

/** Runs a test without a mutant and measures it. Returns undefined if the test fails. */
async function measure(test: CollectedTest, id: string): Promise<Measured | undefined> {
  [reached, evaluations] = [new Set(), 0];
  const before = process.cpuUsage();
  if (!(await passes(test))) return undefined;
  const { user, system } = process.cpuUsage(before);
  return { test, id, reached, evaluations, cpuMs: (user + system) / 1000, kills: 0 };
}

type Tests = ReadonlyMap<string, CollectedTest>;

interface Part {
  readonly candidates: readonly Measured[];
  /** Returns the tests of this part. If the mutant is in code that runs while modules load, loads them again with the mutant. */
  readonly loadTests: () => Promise<Tests>;
}

async function judge(mutant: number, parts: readonly Part[]): Promise<void> {
  const filled = parts.filter(({ candidates }) => candidates.length > 0);
  if (filled.length === 0) return send({ type: 'verdict', mutant, verdict: 'unreached' });
  await send({ type: 'begins', mutant });
  let isNoticed = false;
  for (const part of filled) isNoticed ||= await isNoticedBy(mutant, part);
  await send({ type: 'verdict', mutant, verdict: isNoticed ? 'killed' : 'survived' });
}

/** Returns the tests that fit into the CPU time limit. Tests that detect more mutants per CPU time come first. */
function affordable(candidates: readonly Measured[]): readonly Measured[] {
  const cost = ({ cpuMs, kills }: Measured) => cpuMs / (1 + kills);
  let sumMs = 0;
  return candidates
    .toSorted((a, b) => cost(a) - cost(b))
    .filter(({ cpuMs }) => {
      sumMs += cpuMs;
      return sumMs <= MOST_CPU_MS;
    });
}

async function isNoticedBy(mutant: number, { candidates, loadTests }: Part): Promise<boolean> {
  [active, evaluations, allowed] = [mutant, 0, ALWAYS_ALLOWED * ENDLESS];
  const tests = await loadTests().catch(() => undefined);
  if (tests === undefined) return true;
  for (const each of affordable(candidates)) {
    const test = tests.get(each.id);
    [active, evaluations, allowed] = [mutant, 0, each.evaluations * ENDLESS + ALWAYS_ALLOWED];
    if (test !== undefined && (await passes(test))) continue;
    active = undefined;
    // A test that also fails without the mutant has not detected the mutant.
    if (!(await passes(each.test))) continue;
    each.kills += 1;
    return true;
  }
  active = undefined;
  return false;
}

async function load(files: Iterable<string>, failed?: (file: string, why: unknown) => void): Promise<Tests> {
  generation += 1;
  const tests = new Map<string, CollectedTest>();
  for (const file of files) {
    const url = `${pathToFileURL(file).href}?generation=${generation}`;
    try {
      const found = await testsOf(file, () => import(url));
      for (const [place, test] of found.entries())
        tests.set(`${path.relative(ROOT, file)} ${place}: ${test.name}`, test);
    } catch (error) {
      if (failed === undefined) throw error;
      failed(file, error);
    }
  }
  return tests;
}

function hook(modules: readonly MutatedModule[]): void {
  const globals = new URL('test-globals.ts', import.meta.url).href;
  const firstIds = new Map(modules.map(({ file, firstId }) => [file, firstId]));
  const sources = new Map<string, string>();
  const sourceOf = (file: string) => {
    const text = readFileSync(file, 'utf8');
    const firstId = firstIds.get(file);
    return stripTypeScriptTypes(firstId === undefined ? text : instrumented(text, mutantsOf(file), firstId));
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
