import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startEtcd } from '../support/control-plane.ts';
import { type IntegrationRow, integrationRows } from './integration-table.ts';
import { runLoops } from './loops-runner.ts';

/*
 * Runs the integration tests of the table in test/upstream-tests.md with the loops of this project, and compares the results
 * with the table: run.ts FOLDER [--upstream | --table] [PACKAGE/TEST...]. With --upstream, the loops are those of upstream. With --table,
 * Services get their addresses and ports from the table.
 */

const [folder = '', ...rest] = process.argv.slice(2);
const isUpstream = rest.includes('--upstream');
const allocator = rest.includes('--table') ? 'table' : 'apiserver';
const chosen = rest.filter((word) => !word.startsWith('--'));

interface IntegrationTest extends IntegrationRow {
  readonly test: string;
}

/** The etcd of the tests. Without this one, the tests start one that serves on a socket, to which `fetch` cannot connect. */
const etcd = await startEtcd();

/** The variables by which the tests find etcd and their folder of certificates. */
const env = {
  ...process.env,
  KUBE_INTEGRATION_ETCD_URL: etcd.url,
  PATH: `${dirname(folder)}:${process.env['PATH']}`,
  TEST_SRCDIR: join(folder, 'sources'),
  TEST_WORKSPACE: 'kubernetes',
};

/** Returns the names of the tests that a binary has and the table does not, or the table has and the binary does not. */
function differences(pack: string, rows: readonly IntegrationRow[]): string[] {
  const options = { cwd: tmpdir(), env, encoding: 'utf8' } as const;
  const listed = execFileSync(join(folder, `${pack}.test`), ['-test.list', '.'], options);
  const built = new Set(listed.split('\n').filter((line) => line.startsWith('Test')));
  const inTable = new Set(rows.filter((row) => row.pack === pack).flatMap(({ tests }) => tests));
  return [...new Set([...built, ...inTable])]
    .filter((test) => built.has(test) !== inTable.has(test))
    .map((test) => `${pack}/${test}`);
}

/** Returns whether a test only creates and changes Services of one API server. */
function createsOnly(pack: string, test: string): boolean {
  return pack === 'service' || test.startsWith('TestCreateService');
}

async function runTest({ pack, test, without }: IntegrationTest): Promise<boolean> {
  const scratch = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-upstream-'));
  const log = createWriteStream(join(folder, `${pack}-${test}${isUpstream ? '-upstream' : ''}.log`));
  const ended = new AbortController();
  const args = ['-test.v', '-test.timeout=15m', `-test.run=^${test}$`];
  if (!isUpstream && without !== undefined) args.push(`-test.skip=^${test}$/${without}`);
  const child = spawn(join(folder, `${pack}.test`), args, {
    cwd: scratch,
    env: isUpstream ? env : { ...env, KBCTL_API_SERVERS: scratch },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let isSkipped = false;
  child.stdout.on('data', (chunk: Buffer) => {
    isSkipped ||= chunk.includes(`--- SKIP: ${test} `);
  });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const logLine = (line: string) => void log.write(`LOOPS ${line}\n`);
  const loops = runLoops(scratch, { allocator, log: logLine, signal: ended.signal }).then(
    () => true,
    (error: Error) => {
      log.write(`LOOPS failed: ${error.stack}\n`);
      child.kill();
      return false;
    },
  );
  const [code] = await once(child, 'close');
  ended.abort();
  const haveLoopsEnded = await loops;
  log.end();
  rmSync(scratch, { recursive: true, force: true });
  return code === 0 && !isSkipped && haveLoopsEnded;
}

const rows = integrationRows();
const tests = rows
  .filter((row) => !(isUpstream ? row.upstream : row.ours).startsWith('none: '))
  .flatMap((row) => row.tests.map((test) => ({ ...row, test })))
  .filter(({ pack, test }) => {
    if (chosen.length > 0) return chosen.includes(`${pack}/${test}`);
    return allocator === 'apiserver' || createsOnly(pack, test);
  });
const unlisted = [...new Set(rows.map(({ pack }) => pack))].flatMap((pack) => differences(pack, rows));
for (const name of unlisted) console.log(`FAIL ${name} is not both in the table and in Kubernetes`);
let failed = unlisted.length;
for (const test of tests) {
  const started = Date.now();
  const isPassed = await runTest(test);
  if (!isPassed) failed += 1;
  console.log(
    `${isPassed ? 'ok  ' : 'FAIL'} ${test.pack}/${test.test} (${Math.round((Date.now() - started) / 1000)} s)`,
  );
}
await etcd.close();
console.log(`${tests.length} tests, ${failed} failed; logs: ${folder}`);
process.exitCode = failed === 0 ? 0 : 1;
