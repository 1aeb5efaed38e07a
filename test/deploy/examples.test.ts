import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { emulatedAws } from '../support/emulator-project.ts';
import type { Ran } from '../support/kbctl-process.ts';
import { running } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FUNCTION = 'kube-bootstrap-controller-dev-allocate:live';
const examples = join(import.meta.dirname, '../../examples');

const folder = temporaryFolder();
let python: string;
let world: AllocateWorld;
/** If true, invocations fail before they are finished. */
let fails = false;

/** A server with the Invoke API of Lambda. */
const api = running(async () => {
  const server = await startFaultServer(async ({ path, body }) => {
    if (decodeURIComponent(path) !== `/2015-03-31/functions/${FUNCTION}/invocations`) return { status: 404 };
    try {
      return { body: await world.send(JSON.parse(body), fails ? { ...world.table, put } : world.table) };
    } catch (error) {
      const { name, message } = error as Error;
      const thrown = { errorType: name, errorMessage: message };
      return { headers: { 'x-amz-function-error': 'Unhandled' }, body: thrown };
    }
  });
  return { url: server.url, close: server.stop };
});

beforeAll(() => {
  const install = join(import.meta.dirname, 'install.sh');
  python = join(execFileSync('bash', [install, 'emulator', '--folder'], { encoding: 'utf8' }).trim(), 'bin/python');
  execFileSync('bash', [join(import.meta.dirname, 'build-examples.sh'), join(folder, 'allocate')]);
});

beforeEach(async () => {
  fails = false;
  world = await anAllocateWorld();
});

const put = () => Promise.reject(new TableError('Throttled', 'the table is busy'));

function run(command: string, args: readonly string[]): Promise<Ran> {
  const env = { PATH: process.env['PATH'], HOME: folder, ...emulatedAws(api.url, 'test') };
  return promisify(execFile)(command, args, { env, encoding: 'utf8' }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code = 1, stdout = '', stderr = '' }) => ({ code, stdout, stderr }),
  );
}

describe.each<{ language: string; call: (requestId: string) => Promise<Ran> }>([
  { language: 'Go', call: (id) => run(join(folder, 'allocate'), [FUNCTION, CLUSTER, id]) },
  { language: 'Python', call: (id) => run(python, [join(examples, 'allocate.py'), FUNCTION, CLUSTER, id]) },
])('the caller in $language', ({ call }) => {
  const GIVEN = 'serviceips 10.0.0.17\nservicenodeports 30016\nservicenodeports 30017\n';

  test('the caller gets the requested items, and gets the same items again if it repeats the request id', async () => {
    expect(await call('one')).toEqual({ code: 0, stdout: GIVEN, stderr: '' });
    expect(await call('one')).toEqual({ code: 0, stdout: GIVEN, stderr: '' });
    expect(await world.taken()).toEqual({ '10.0.0.17': 'one', '30016': 'one', '30017': 'one' });
  });

  test('the caller prints the refusal and ends with code 1', async () => {
    await world.store(RANGE_KEYS.primary, { data: fromBits(Array(254).keys()) });
    expect(await call('one')).toEqual({ code: 1, stdout: '', stderr: 'Full: range is full\n' });
  });

  test('if the function cannot finish, the caller prints what to do, and a second call with the same request id gets the items', async () => {
    fails = true;
    expect(await call('one')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'Throttled: request one was not finished, invoke it again with the same requestId: it resumes where this one ended. the table is busy\n',
    });
    fails = false;
    expect(await call('one')).toEqual({ code: 0, stdout: GIVEN, stderr: '' });
  });
});
