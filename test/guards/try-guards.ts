import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { edited } from '../simulation/load-with-stand-ins.ts';
import type { Edit, Plant } from '../simulation/plants.ts';
import { seededPick } from '../support/ranges.ts';
import { REPOSITORY } from '../support/repository.ts';
import '../support/temporary-files.mjs';
import { GUARDS, projectOf, testFileOf } from './guards.ts';

/** The options of Node with which the script "jest" runs the tests. */
const NODE_OPTIONS = ['--experimental-vm-modules', '--max-semi-space-size=32', '--disable-warning=ExperimentalWarning'];

const HELP = `npm run guards -- [--jobs N] [TEXT ...]   removes one guard at a time, in a copy of the repository, and runs the test of SECURITY.md that must
                                          notice; with TEXT only guards whose test file or title contains it
npm run guards -- --seconds N [--seed N]  in random order, and starts none after N seconds
npm run guards -- --all                   also those whose test needs the template, a real API server, the emulator or a browser`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    help: { type: 'boolean', default: false },
  },
});

/** The rows of SECURITY.md whose tests pass with all guards. */
const passing = new Set<string>();

if (values.help) console.log(HELP);
else process.exitCode = await tryGuards(chosenGuards());

function chosenGuards(): readonly Plant[] {
  const guards = GUARDS.filter(
    (guard) =>
      (values.all || projectOf(testOf(guard)) === 'unit') &&
      (positionals.length === 0 || positionals.some((text) => `${guard.id} ${guard.defect}`.includes(text))),
  );
  if (values.seconds === undefined) return guards;
  const pick = seededPick(Number(values.seed));
  const ranked = guards.map((guard) => ({ guard, rank: pick(2 ** 32) })).toSorted((a, b) => a.rank - b.rank);
  return ranked.map(({ guard }) => guard);
}

function testOf({ id: file, defect: title }: Plant): string {
  const testFile = testFileOf({ file, title });
  if (testFile === undefined) throw new Error(`guards.txt: no test file ${file} has the title: ${title}`);
  return testFile;
}

/** Returns 0 if the test of each guard fails without the guard, and passes with it. */
async function tryGuards(guards: readonly Plant[]): Promise<number> {
  const waiting = [...guards];
  const endMs = values.seconds === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(values.seconds) * 1_000;
  let held = 0;
  let unheld = 0;
  const jobs = Math.min(Number(values.jobs), guards.length);
  const work = async () => {
    const copy = copyOfRepository();
    for (let guard = waiting.shift(); guard !== undefined && Date.now() < endMs; guard = waiting.shift()) {
      const startedAtMs = Date.now();
      const result = await tryGuard(copy, guard);
      if (result === 'noticed') held += 1;
      else unheld += 1;
      const seconds = String(Math.round((Date.now() - startedAtMs) / 1000)).padStart(4);
      console.log(`${result.padEnd(18)} ${seconds} s  ${guard.id}: ${guard.defect} (${filesOf(guard)})`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  console.log(`Tests: ${held} passed, ${unheld} failed, of ${guards.length} guards`);
  return unheld > 0 || held === 0 ? 1 : 0;
}

/** Copies the files of the repository. Packages are only linked, so that a copy takes little time and space. */
function copyOfRepository(): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'guards-'));
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: REPOSITORY });
  for (const file of listed.toString().trim().split('\n')) {
    cpSync(path.join(REPOSITORY, file), path.join(copy, file), { recursive: true });
  }
  symlinkSync(path.join(REPOSITORY, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

function filesOf({ edits }: Plant): string {
  return edits.map(({ file }) => file).join(', ');
}

type Result = 'noticed' | 'NOT NOTICED' | 'fails with guard' | 'did not run';

async function tryGuard(copy: string, guard: Plant): Promise<Result> {
  const before = guard.edits.map(
    ({ file }) => [path.join(copy, file), readFileSync(path.join(copy, file), 'utf8')] as const,
  );
  for (const edit of guard.edits) apply(copy, edit);
  const without = await runTest(copy, guard);
  for (const [file, text] of before) writeFileSync(file, text);
  if (without !== 'failed') return without === 'passed' ? 'NOT NOTICED' : 'did not run';
  const row = `${guard.id}: ${guard.defect}`;
  if (!passing.has(row) && (await runTest(copy, guard)) === 'passed') passing.add(row);
  return passing.has(row) ? 'noticed' : 'fails with guard';
}

function apply(copy: string, edit: Edit): void {
  const file = path.join(copy, edit.file);
  writeFileSync(file, edited(readFileSync(file, 'utf8'), edit));
}

type Outcome = 'passed' | 'failed' | 'did not run';

interface JestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/**
 * Runs the test of a guard in the copy. Tests that are not unit tests may depend on earlier tests of their file, so that the whole
 * file runs. A test file that does not even load counts as a test that did not run.
 */
async function runTest(copy: string, guard: Plant): Promise<Outcome> {
  const testFile = testOf(guard);
  const project = projectOf(testFile);
  const report = path.join(copy, 'guards-report.json');
  writeFileSync(report, '{"testResults":[]}');
  const pattern = patternOf(guard.defect);
  const limited = project === 'unit' ? ['--testNamePattern', pattern] : ['--testTimeout', '600000'];
  const output = ['--json', '--outputFile', report, '--silent', '--runInBand', '--forceExit'];
  const options = ['--selectProjects', project, '--testPathPatterns', `/${testFile}$`, ...limited, ...output];
  const node = [...NODE_OPTIONS, 'node_modules/jest/bin/jest.js', ...options];
  // Node sometimes hangs while it exits, after jest has written its report.
  // The tests create folders of their own. In that of this process, the paths of a browser's sockets would be too long.
  const env = { ...process.env, TMPDIR: path.dirname(tmpdir()) };
  const timeout = project === 'unit' ? 180_000 : 3_600_000;
  const limits = { timeout, killSignal: 'SIGKILL', maxBuffer: 2 ** 28 } as const;
  // A deploy test needs addresses that only its network namespace has.
  const command = project === 'deploy' ? ['bash', 'test/deploy/in-namespace.sh', process.execPath] : [process.execPath];
  const [program = '', ...args] = [...command, ...node];
  await new Promise<void>((done) => {
    execFile(program, args, { cwd: copy, env, ...limits }, () => done()).stdin?.end();
  });
  const { testResults }: JestReport = JSON.parse(readFileSync(report, 'utf8'));
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const statuses = new Set(
    tests.filter(({ fullName }) => new RegExp(pattern).test(fullName)).map(({ status }) => status),
  );
  if (statuses.has('failed')) return 'failed';
  return statuses.has('passed') ? 'passed' : 'did not run';
}

/** Returns the pattern of a title, in which a value of each case replaces its placeholders. */
function patternOf(title: string): string {
  return title
    .split(/%[sij]|\$\w+/)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
}
