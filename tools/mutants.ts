import { fork } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { seededPick } from '../test/support/ranges.ts';
import '../test/support/temporary-files.mjs';
import { mutantsOf } from './mutants/plan.ts';
import type { Message, MutantVerdict, Task } from './mutants/worker.ts';

/*
 * npm run mutants [-- --sample N --seed S --workers N] [file ...]: changes one expression or statement at a time, and
 * runs the tests that reach it. Prints each mutant that no test detects and that tools/mutants/explained.txt does
 * not explain.
 */

const ROOT = path.join(import.meta.dirname, '..');
const MODULES = ['allocator', 'cluster', 'endpoints', 'leases', 'range', 'repair', 'table'].map(
  (folder) => `lib/${folder}/**/*.ts`,
);
/** Tests that do not run for mutants, because they import nearly everything, take long, or start processes. */
const TESTS_ASIDE =
  /^test\/(simulation|conformance|deploy|page|tables|template|docs|cli|local|tools|functions|hostile|bad-input|crash-sweep|dispatch\/containment|runtime\/other-server)\b/;
/**
 * The maximum number of test files per module: the files with the fewest imports between them and the module. A test
 * file of another area counts as one import further away.
 */
const TEST_FILES = 40;
const MOST_OF_A_MODULE = 20;
/** The time limit for the tests of one mutant, on a busy machine. */
const SILENT_MS = 150_000;
const LEAST_KILLED = 0.9;
/** The share of mutants that tests must detect in a sample: lower, because a sample might consist of the worst modules. */
const LEAST_OF_SAMPLE = 0.85;

const imports = new Map<string, readonly string[]>();

interface Keyed {
  readonly module: string;
  readonly line: number;
  /** Identifies the mutant even if lines move. */
  readonly key: string;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});
process.exitCode = await main(
  positionals.length > 0 ? positionals : MODULES.flatMap((glob) => globSync(glob, { cwd: ROOT })).sort(),
);

async function main(modules: readonly string[]): Promise<number> {
  const all = modules.flatMap(keyed);
  const chosen = values.sample === undefined ? all : sampleOf(all, Number(values.sample), Number(values.seed));
  const chosenModules = [...new Set(chosen.map(({ module }) => module))];
  const workers = Math.min(Number(values.workers), chosenModules.length);
  const share = Math.ceil(chosenModules.length / workers);
  const parts = Array.from({ length: workers }, (_, n) => chosenModules.slice(n * share, (n + 1) * share));
  const explained = explanations();
  const outcomes = new Map<Keyed, Outcome>();
  const note = (mutant: Keyed, verdict: MutantVerdict) => outcomes.set(mutant, outcomeOf(mutant, verdict, explained));
  const isOpen = (mutant: Keyed) => chosen.includes(mutant) && !outcomes.has(mutant);
  await Promise.all(parts.map((part) => judgeAll(part, all, isOpen, note)));
  for (const mutant of chosen) if (!outcomes.has(mutant)) note(mutant, 'unreached');
  if (values.sample === undefined) {
    const needless = [...explained].filter((key) => modules.some((module) => key.startsWith(`${module} |`)));
    for (const key of needless) console.log(`explained, but killed or not there: ${key}`);
  }
  const results = [...outcomes];
  for (const nameOf of [(module: string) => module, path.dirname]) {
    for (const [name, found] of Map.groupBy(results, ([{ module }]) => nameOf(module))) {
      console.log(`${name}: ${summaryOf(found.map(([, outcome]) => outcome)).text}`);
    }
  }
  const total = summaryOf([...outcomes.values()]);
  console.log(`together: ${total.text}`);
  return total.share >= (values.sample === undefined ? LEAST_KILLED : LEAST_OF_SAMPLE) ? 0 : 1;
}

type Outcome = MutantVerdict | 'explained';

/** Returns a line about the outcomes, and the share of mutants that are detected or explained. */
function summaryOf(outcomes: readonly Outcome[]): { readonly text: string; readonly share: number } {
  const count = (wanted: Outcome) => outcomes.filter((outcome) => outcome === wanted).length;
  const [killed, explained] = [count('killed'), count('explained')];
  const share = (killed + explained) / outcomes.length;
  const counts = `${killed} killed, ${explained} explained, ${count('survived')} survived, ${count('unreached')} not reached`;
  return { share, text: `${outcomes.length} mutants, ${counts}: ${(share * 100).toFixed(1)} %` };
}

/** Returns the outcome of a mutant. Prints an unexplained survivor, and removes a used explanation from `explained`. */
function outcomeOf({ line, key }: Keyed, verdict: MutantVerdict, explained: Set<string>): Outcome {
  if (verdict === 'killed') return verdict;
  if (explained.delete(key)) return 'explained';
  console.log(`${verdict} at line ${line}: ${key}`);
  return verdict;
}

/** Returns the keys in explained.txt. Each line has the key of a mutant, a tab and the reason. */
function explanations(): Set<string> {
  const file = path.join(import.meta.dirname, 'mutants/explained.txt');
  return new Set(
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => line.split('\t', 1))
      .filter(Boolean),
  );
}

function keyed(module: string): readonly Keyed[] {
  const lines = readFileSync(path.join(ROOT, module), 'utf8').split('\n');
  const short = (text: string) => text.replace(/\s+/g, ' ').trim();
  const seen = new Map<string, number>();
  return mutantsOf(path.join(ROOT, module)).map(({ line, original, replacement }) => {
    const change = `${short(original)} → ${replacement === '' ? 'removed' : short(replacement)}`;
    const key = `${module} | ${short(lines[line - 1] ?? '')} | ${change}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    return { module, line, key: count === 1 ? key : `${key} (${count})` };
  });
}

/** Returns a sample of mutants from few modules, because loading the tests of a module takes longest. */
function sampleOf(all: readonly Keyed[], count: number, seed: number): Keyed[] {
  const pick = seededPick(seed);
  const shuffled = <T>(values: readonly T[]): T[] =>
    values
      .map((value) => ({ value, rank: pick(2 ** 32) }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ value }) => value);
  const modules = [...Map.groupBy(all, ({ module }) => module).values()];
  const ofEach = shuffled(modules).flatMap((mutants) => shuffled(mutants).slice(0, MOST_OF_A_MODULE));
  return ofEach.slice(0, count);
}

/** Judges the mutants of some modules. A mutant's number is its place in `all`. Starts workers while they add verdicts. */
async function judgeAll(
  names: readonly string[],
  all: readonly Keyed[],
  isOpen: (mutant: Keyed) => boolean,
  note: (mutant: Keyed, verdict: MutantVerdict) => void,
): Promise<void> {
  const tests = runnableTests();
  const modules = names.map((name) => ({
    file: path.join(ROOT, name),
    firstId: all.findIndex(({ module }) => module === name),
    mutants: all.filter(({ module }) => module === name).length,
    testFiles: testsOf(name, tests),
  }));
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const open = all.flatMap((mutant, id) => (names.includes(mutant.module) && isOpen(mutant) ? [id] : []));
    if (open.length === 0 || open.length === before) return;
    before = open.length;
    await runWorker({ modules, open }, (id, verdict) => all[id] && note(all[id], verdict));
  }
}

/**
 * Starts a worker and waits until it has ended. Ends a worker that sends nothing for too long, because its mutant has caused an
 * endless loop. The mutant that ended or silenced the worker counts as detected.
 */
function runWorker(task: Task, note: (id: number, verdict: MutantVerdict) => void): Promise<void> {
  const worker = fork(path.join(import.meta.dirname, 'mutants/worker.ts'), {
    cwd: ROOT,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let current: number | undefined;
  const giveUp = () => worker.kill('SIGKILL');
  let timer = setTimeout(giveUp, SILENT_MS * 3);
  worker.on('message', (message: Message) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, SILENT_MS);
    current = message.type === 'begins' ? message.mutant : undefined;
    if (message.type === 'verdict') note(message.mutant, message.verdict);
    if (message.type !== 'ready') return;
    for (const file of message.unloaded) console.log(`not loaded: ${file}`);
    for (const test of message.failing) console.log(`fails without a mutant: ${test}`);
  });
  worker.send(task);
  return new Promise((done) => {
    worker.once('exit', () => {
      clearTimeout(timer);
      if (current !== undefined) note(current, 'killed');
      done();
    });
  });
}

/** Returns the test files to run, without those that use `jest.spyOn`, which tools/mutants/test-globals.ts does not provide. */
function runnableTests(): readonly string[] {
  const hasSpies = (file: string) => readFileSync(path.join(ROOT, file), 'utf8').includes('jest.spyOn(');
  return globSync('test/**/*.test.ts', { cwd: ROOT }).filter((file) => !TESTS_ASIDE.test(file) && !hasSpies(file));
}

function testsOf(module: string, files: readonly string[]): readonly string[] {
  const near = files.flatMap((file) => {
    const isOwn = path.basename(file, '.test.ts') === path.basename(module, '.ts');
    const distance = isOwn ? 0 : distanceTo(module, file);
    const isOfArea = path.basename(path.dirname(file)) === path.basename(path.dirname(module));
    const rank = (distance ?? 0) + (isOwn || isOfArea ? 0 : 1);
    return distance === undefined ? [] : [{ file: path.join(ROOT, file), rank }];
  });
  return near
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, TEST_FILES)
    .map(({ file }) => file);
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
