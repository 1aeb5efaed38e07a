import { fork } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { mutantsOf } from './mutants/plan.ts';
import type { Message, Task } from './mutants/worker.ts';

/*
 * npm run mutants [-- --sample N --seed S] [file ...]: changes one expression or statement after the other, and runs the tests that
 * reach it. Prints each mutant that no test notices, unless tools/mutants/explained.txt says why none can.
 */

const ROOT = path.join(import.meta.dirname, '..');
const MODULES = [
  'lib/allocator/*.ts',
  'lib/endpoints/*.ts',
  'lib/repair/*.ts',
  'lib/table/range-*.ts',
  'lib/table/dynamodb-*.ts',
];
/** They reach nearly everything, take long, or start processes. */
const TESTS_ASIDE =
  /^test\/(simulation|conformance|deploy|page|template|docs|cli|local|tools|functions|hostile|crash-sweep|drills|bad-input)\//;
/** Those from which the fewest imports lead to the module come first; what survives them meets the others. */
const TEST_FILES_AT_ONCE = [4, 8];
/** In a sample. */
const MOST_OF_A_MODULE = 20;
const SILENT_MS = 60_000;
const LEAST_KILLED = 0.9;

/** The imports of each file, by file; entered when they are first needed. */
const imports = new Map<string, readonly string[]>();

type Verdict = 'killed' | 'survived' | 'unreached';

interface Keyed {
  readonly module: string;
  readonly id: number;
  readonly line: number;
  /** Identifies the mutant although lines move. */
  readonly key: string;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '1' } },
});
process.exitCode = await main(
  positionals.length > 0 ? positionals : MODULES.flatMap((glob) => globSync(glob, { cwd: ROOT })).sort(),
);

async function main(modules: readonly string[]): Promise<number> {
  const all = modules.flatMap(keyed);
  const chosen = values.sample === undefined ? all : sampleOf(all, Number(values.sample), Number(values.seed));
  const explained = explanations();
  const totals = { killed: 0, survived: 0, unreached: 0, explained: 0 };
  for (const module of new Set(chosen.map((each) => each.module))) {
    const mutants = chosen.filter((each) => each.module === module);
    const results = await resultsOf(module, mutants, explained);
    for (const result of results) totals[result] += 1;
    const killed = results.filter((result) => result === 'killed').length;
    console.log(`${module}: ${killed} of ${mutants.length} killed`);
  }
  if (values.sample === undefined) printNeedless(explained, modules);
  const share = (totals.killed + totals.explained) / chosen.length;
  console.log(
    `${JSON.stringify(totals)}, ${(share * 100).toFixed(1)} % of ${chosen.length} of ${all.length} mutants killed or explained`,
  );
  // A sample is too small for a verdict on the share.
  return share >= LEAST_KILLED || values.sample !== undefined ? 0 : 1;
}

/** Prints those that survive; an explanation that is used is deleted. */
async function resultsOf(
  module: string,
  mutants: readonly Keyed[],
  explained: Set<string>,
): Promise<readonly (Verdict | 'explained')[]> {
  const ids = mutants.map(({ id }) => id);
  const verdicts = await verdictsOn(module, ids);
  return mutants.map(({ id, line, key }) => {
    const verdict = verdicts.get(id) ?? 'unreached';
    if (verdict === 'killed') return verdict;
    if (explained.delete(key)) return 'explained';
    console.log(`${verdict} at line ${line}: ${key}`);
    return verdict;
  });
}

function printNeedless(explained: ReadonlySet<string>, modules: readonly string[]): void {
  const needless = [...explained].filter((key) => modules.some((module) => key.startsWith(`${module} |`)));
  for (const key of needless) console.log(`explained, but killed or not there: ${key}`);
}

/** One line is one mutant: its key, and after a tab the reason. */
function explanations(): Set<string> {
  const file = path.join(import.meta.dirname, 'mutants/explained.txt');
  return new Set(
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => line.split('\t', 1))
      .filter(Boolean),
  );
}

/** Returns the mutants of a module. What a key contains of the source is its line; of equal keys each but the first has a number. */
function keyed(module: string): readonly Keyed[] {
  const lines = readFileSync(path.join(ROOT, module), 'utf8').split('\n');
  const short = (text: string) => text.replace(/\s+/g, ' ').trim();
  const seen = new Map<string, number>();
  return mutantsOf(path.join(ROOT, module)).map(({ line, original, replacement }, id) => {
    const change = `${short(original)} → ${replacement === '' ? 'removed' : short(replacement)}`;
    const key = `${module} | ${short(lines[line - 1] ?? '')} | ${change}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    return { module, id, line, key: count === 1 ? key : `${key} (${count})` };
  });
}

/** A few modules and some mutants of each, the same ones for the same seed: loading the tests of a module takes longest. */
function sampleOf<Each extends { readonly module: string }>(all: readonly Each[], count: number, seed: number): Each[] {
  const next = generator(seed);
  const shuffled = <T>(values: readonly T[]): T[] =>
    values
      .map((value) => ({ value, rank: next() }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ value }) => value);
  const modules = shuffled([...new Set(all.map(({ module }) => module))]);
  const ofEach = modules.map((module) =>
    shuffled(all.filter((each) => each.module === module)).slice(0, MOST_OF_A_MODULE),
  );
  return ofEach.flat().slice(0, count);
}

/** A linear congruential generator. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}

async function verdictsOn(module: string, mutants: readonly number[]): Promise<ReadonlyMap<number, Verdict>> {
  const verdicts = new Map<number, Verdict>();
  const testFiles = testsOf(module);
  let [from, open] = [0, mutants];
  for (const count of TEST_FILES_AT_ONCE) {
    const some = testFiles.slice(from, from + count);
    if (open.length === 0 || some.length === 0) break;
    for (const [id, verdict] of await verdictsOf(module, some, open)) {
      if (verdict !== 'unreached' || !verdicts.has(id)) verdicts.set(id, verdict);
    }
    open = open.filter((id) => verdicts.get(id) !== 'killed');
    from += count;
  }
  return verdicts;
}

async function verdictsOf(
  module: string,
  testFiles: readonly string[],
  mutants: readonly number[],
): Promise<ReadonlyMap<number, Verdict>> {
  const verdicts = new Map<number, Verdict>();
  const atLoad = new Set<number>();
  for (let open = mutants; open.length > 0; open = mutants.filter((id) => !verdicts.has(id) && !atLoad.has(id))) {
    const before = verdicts.size + atLoad.size;
    await runWorker({ module: path.join(ROOT, module), testFiles, mutants: open }, verdicts, atLoad);
    if (verdicts.size + atLoad.size === before) break;
  }
  for (const fixed of mutants.filter((id) => atLoad.has(id) && !verdicts.has(id))) {
    await runWorker({ module: path.join(ROOT, module), testFiles, mutants: [fixed], fixed }, verdicts, atLoad);
    // The module does not even load with it.
    if (!verdicts.has(fixed)) verdicts.set(fixed, 'killed');
  }
  return verdicts;
}

/** Returns when the worker has ended. One that is silent is ended: its mutant made something endless, which a test notices. */
function runWorker(task: Task, verdicts: Map<number, Verdict>, atLoad: Set<number>): Promise<void> {
  const worker = fork(path.join(import.meta.dirname, 'mutants/worker.ts'), {
    cwd: ROOT,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let current: number | undefined;
  const giveUp = () => {
    if (current !== undefined) verdicts.set(current, 'killed');
    worker.kill('SIGKILL');
  };
  let timer = setTimeout(giveUp, SILENT_MS * 3);
  worker.on('message', (message: Message) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, SILENT_MS);
    current = message.type === 'begins' ? message.mutant : undefined;
    if (message.type === 'verdict') verdicts.set(message.mutant, message.verdict);
    if (message.type === 'ready') loaded(message, task, atLoad);
  });
  worker.send(task);
  return new Promise((done) => {
    worker.once('exit', () => {
      clearTimeout(timer);
      done();
    });
  });
}

function loaded(
  { static: found, unloaded, failing }: Message & { readonly type: 'ready' },
  { mutants }: Task,
  atLoad: Set<number>,
): void {
  for (const id of found) if (mutants.includes(id)) atLoad.add(id);
  for (const file of unloaded) console.log(`not loaded: ${file}`);
  for (const test of failing) console.log(`fails without a mutant: ${test}`);
}

/** The test files from which imports lead to the module: first that of its name, then the nearest. */
function testsOf(module: string): readonly string[] {
  const files = globSync('test/**/*.test.ts', { cwd: ROOT }).filter((file) => !TESTS_ASIDE.test(file));
  const near = files.flatMap((file) => {
    const isOwn = path.basename(file, '.test.ts') === path.basename(module, '.ts');
    const distance = isOwn ? 0 : distanceTo(module, file);
    return distance === undefined ? [] : [{ file: path.join(ROOT, file), distance }];
  });
  return near.toSorted((a, b) => a.distance - b.distance).map(({ file }) => file);
}

function distanceTo(module: string, from: string): number | undefined {
  const seen = new Set([from]);
  for (let [level, distance] = [[from], 0]; level.length > 0; distance++) {
    if (level.includes(module)) return distance;
    const next = level.flatMap(importsOf).filter((file) => !seen.has(file));
    for (const file of next) seen.add(file);
    level = [...new Set(next)];
  }
  return undefined;
}

function importsOf(file: string): readonly string[] {
  const known = imports.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const found = [...text.matchAll(/^(?:import|export|\}) ?(?!type ).*from '(\.[^']+\.ts)'/gm)].map(([, to = '']) =>
    path.join(path.dirname(file), to),
  );
  imports.set(file, found);
  return found;
}
