import { fork } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { seededPick } from '../test/support/ranges.ts';
import '../test/support/temporary-files.mjs';
import { planOf } from './mutants/plan.ts';
import type { Message, MutantVerdict, MutatedModule } from './mutants/worker.ts';

const USAGE = `Usage: npm run mutants [-- [--sample N] [--seed S] [--workers N] [file ...]]

Changes one expression or statement of the files (default: seven folders of lib) at a time, and runs the tests that reach it.
Prints each mutant that no test detects and that tools/mutants/explained.txt does not explain.

  --sample N    judge only N random mutants, of few files
  --seed S      the seed of the sample; default: 1
  --workers N   the number of processes; default: one for each CPU`;

const MODULES = 'lib/{allocator,cluster,endpoints,leases,range,repair,table}/**/*.ts';
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
/** The least share of detected mutants in a sample: below `LEAST_KILLED`, because a sample might consist of the worst modules. */
const LEAST_OF_SAMPLE = 0.85;

interface Keyed {
  readonly module: string;
  readonly line: number;
  /** Identifies the mutant even if lines move. */
  readonly key: string;
}

type Outcome = MutantVerdict | 'explained';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', short: 'h' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit();
}
const modules = positionals.length > 0 ? positionals : globSync(MODULES).sort();
/** All mutants of the modules. A mutant's number is its place in this list. */
const all = modules.flatMap(keyed);
const chosen = values.sample === undefined ? all : sampleOf(Number(values.sample), Number(values.seed));
/** The keys in explained.txt. Each line has the key of a mutant, a tab and the reason. */
const explained = new Set(readFileSync('tools/mutants/explained.txt', 'utf8').match(/^[^\t\n]+(?=\t)/gm));
const sources = new Map(
  globSync('{cli,deploy,lib,local,test,tools}/**/*.ts').map((file) => [file, readFileSync(file, 'utf8')]),
);
/** For each file, the imports of this file by other files. Imports of types have no effect on a test. */
const importers = Map.groupBy([...sources].flatMap(importsOf), ({ imported }) => imported);
/** The test files to run, without those that use `jest.spyOn`, which tools/mutants/test-globals.ts does not provide. */
const testFiles = [...sources].flatMap(([file, text]) =>
  /^test\/.*\.test\.ts$/.test(file) && !TESTS_ASIDE.test(file) && !text.includes('jest.spyOn(') ? [file] : [],
);
const outcomes = new Map<Keyed, Outcome>();

const chosenModules = [...new Set(chosen.map(({ module }) => module))];
const share = Math.ceil(chosenModules.length / Number(values.workers));
const starts = chosenModules.flatMap((_, at) => (at % share === 0 ? [at] : []));
await Promise.all(starts.map((at) => judgeAll(chosenModules.slice(at, at + share))));
for (const mutant of chosen) if (!outcomes.has(mutant)) note(mutant, 'unreached');
if (values.sample === undefined) {
  const needless = [...explained].filter((key) => modules.some((module) => key.startsWith(`${module} |`)));
  for (const key of needless) console.log(`explained, but killed or not there: ${key}`);
}
for (const nameOf of [(module: string) => module, path.dirname]) {
  for (const [name, found] of Map.groupBy(outcomes, ([{ module }]) => nameOf(module))) {
    console.log(`${name}: ${summaryOf(found.map(([, outcome]) => outcome)).text}`);
  }
}
const total = summaryOf([...outcomes.values()]);
console.log(`together: ${total.text}`);
process.exitCode = total.share >= (values.sample === undefined ? LEAST_KILLED : LEAST_OF_SAMPLE) ? 0 : 1;

/** Returns a line about the outcomes, and the share of mutants that are detected or explained. */
function summaryOf(found: readonly Outcome[]): { readonly text: string; readonly share: number } {
  const count = (wanted: Outcome) => found.filter((outcome) => outcome === wanted).length;
  const share = (count('killed') + count('explained')) / found.length;
  const counts = (['killed', 'explained', 'survived', 'unreached'] as const).map((each) => `${count(each)} ${each}`);
  return { share, text: `${found.length} mutants, ${counts.join(', ')}: ${(share * 100).toFixed(1)} %` };
}

/** Saves the outcome of a mutant. Prints an unexplained survivor, and removes a used key from `explained`. */
function note(mutant: Keyed, verdict: MutantVerdict): void {
  const isExplained = verdict !== 'killed' && explained.delete(mutant.key);
  outcomes.set(mutant, isExplained ? 'explained' : verdict);
  if (verdict !== 'killed' && !isExplained) console.log(`${verdict} at line ${mutant.line}: ${mutant.key}`);
}

function keyed(module: string): readonly Keyed[] {
  const lines = readFileSync(module, 'utf8').split('\n');
  const short = (text: string) => text.replace(/\s+/g, ' ').trim();
  const seen = new Map<string, number>();
  return planOf(module).mutants.map(({ line, original, replacement }) => {
    const change = `${short(original)} → ${replacement === '' ? 'removed' : short(replacement)}`;
    const key = `${module} | ${short(lines[line - 1] ?? '')} | ${change}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    return { module, line, key: count === 1 ? key : `${key} (${count})` };
  });
}

/** Returns a sample of mutants from few modules, because loading the tests of a module takes longest. */
function sampleOf(count: number, seed: number): Keyed[] {
  const pick = seededPick(seed);
  const shuffled = <T>(values: readonly T[]): T[] =>
    values
      .map((value) => ({ value, rank: pick(2 ** 32) }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ value }) => value);
  const ofModules = [...Map.groupBy(all, ({ module }) => module).values()];
  const ofEach = shuffled(ofModules).flatMap((mutants) => shuffled(mutants).slice(0, MOST_OF_A_MODULE));
  return ofEach.slice(0, count);
}

/** Judges the mutants of some modules. Starts one worker after the other until a worker adds no verdict. */
async function judgeAll(names: readonly string[]): Promise<void> {
  const tests = new Map(names.map((name) => [name, testsOf(name)]));
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const modules = names.map((name) => ({
      file: path.resolve(name),
      firstId: all.findIndex(({ module }) => module === name),
      testFiles: tests.get(name) ?? [],
      open: chosen.flatMap((mutant) => (mutant.module === name && !outcomes.has(mutant) ? [all.indexOf(mutant)] : [])),
    }));
    const left = modules.reduce((sum, { open }) => sum + open.length, 0);
    if (left === 0 || left === before) return;
    before = left;
    await runWorker(modules);
  }
}

/**
 * Starts a worker and waits until it has ended. Ends a worker that sends nothing for too long, because its mutant has caused an
 * endless loop. The mutant that ended or silenced the worker counts as detected.
 */
async function runWorker(modules: readonly MutatedModule[]): Promise<void> {
  const worker = fork(path.join(import.meta.dirname, 'mutants/worker.ts'), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let current: number | undefined;
  const giveUp = () => worker.kill('SIGKILL');
  let timer = setTimeout(giveUp, SILENT_MS * 3);
  const judged = (id: number, verdict: MutantVerdict) => all[id] && note(all[id], verdict);
  worker.on('message', ({ begins, verdict }: Message) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, SILENT_MS);
    current = begins;
    if (verdict !== undefined) judged(...verdict);
  });
  worker.send(modules);
  await once(worker, 'exit');
  clearTimeout(timer);
  if (current !== undefined) judged(current, 'killed');
}

/** Returns the tests of a module: the files with the fewest imports between them and the module. */
function testsOf(module: string): readonly string[] {
  const distances = new Map([[module, 0]]);
  for (const [file, distance] of distances) {
    for (const { importer } of importers.get(file) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1);
    }
  }
  const ranked = testFiles.flatMap((file) => {
    const isOwn = path.basename(file, '.test.ts') === path.basename(module, '.ts');
    const isOfArea = path.basename(path.dirname(file)) === path.basename(path.dirname(module));
    const distance = isOwn ? 0 : distances.get(file);
    return distance === undefined ? [] : [{ file: path.resolve(file), rank: distance + (isOwn || isOfArea ? 0 : 1) }];
  });
  return ranked
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, TEST_FILES)
    .map(({ file }) => file);
}

function importsOf([importer, text]: readonly [file: string, text: string]) {
  const found = text.matchAll(/^(?:import|export|\}) ?(?!type ).*from '(\.[^']+\.ts)'/gm);
  return [...found].map(([, to = '']) => ({ importer, imported: path.join(path.dirname(importer), to) }));
}
