import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { afterThisTest } from '../support/after-this-test.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runFunction } from './emulator-function.ts';

/** Runs a handler with this source code. */
function run(handler: string, limitMs = 10_000) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'index.mjs'), `export const handler = ${handler};`);
  const running = runFunction({ folder, opt: '', handler: 'index.handler', limitMs, environment: {} });
  afterThisTest(() => running.stop());
  return running;
}

test('a process answers several events, and its lines and its largest memory are reported', async () => {
  const running = run(
    'async ({ n }) => { process.stdout.write("line " + n + "\\n"); return { n, pid: process.pid }; }',
  );
  const first = await running.invoke({ n: 1 });
  const second = await running.invoke({ n: 2 });
  expect(first).toMatchObject({ answer: { n: 1 }, lines: ['line 1'] });
  expect(second).toMatchObject({ answer: { ...(first.answer as object), n: 2 }, lines: ['line 2'] });
  expect(second.peakMemoryMb).toBeGreaterThan(20);
  expect(running.lines()).toEqual(['line 1', 'line 2']);
});

test('the remaining time of a handler that is not killed at its limit becomes negative', async () => {
  const running = run('async (_, context) => { while (context.getRemainingTimeInMillis() >= 0); return "late"; }', 5);
  expect(await running.invoke({}, { killedAfterMs: 60_000 })).toMatchObject({ answer: 'late' });
});

test('an error of a handler is reported, and the process takes the next event', async () => {
  const running = run('async ({ fails }) => { if (fails) throw new TypeError("no"); return "yes"; }');
  expect(await running.invoke({ fails: true })).toMatchObject({
    error: { errorType: 'TypeError', errorMessage: 'no' },
    lines: [expect.stringMatching(/\tERROR\tInvoke Error/)],
  });
  expect(await running.invoke({})).toMatchObject({ answer: 'yes' });
});

test('an error at import is reported for the event that started the process', async () => {
  const running = run('(() => { throw new Error("no handler"); })()');
  expect(await running.invoke({})).toMatchObject({ error: { errorType: 'Error', errorMessage: 'no handler' } });
});

test('a process that reaches the time limit is killed, and the next event starts another process', async () => {
  const running = run('async ({ waits }) => { if (waits) for (;;); return "in time"; }');
  expect(await running.invoke({ waits: true }, { killedAfterMs: 200 })).toMatchObject({
    error: { errorType: 'Sandbox.Timedout' },
  });
  expect(await running.invoke({})).toMatchObject({ answer: 'in time' });
});

/*
 * The runtime client does not handle such a rejection: Node.js prints it, and ends the process after it has taken the next event.
 * The client answers in the next step of the event loop, so this promise rejects in the one after that.
 */
test('if a promise rejects after the answer, its error is printed, and the next event is lost', async () => {
  const running = run(
    'async ({ late }) => { if (late) setImmediate(() => setImmediate(() => Promise.reject(new Error("too late")))); return "answered"; }',
  );
  expect(await running.invoke({ late: true })).toMatchObject({ answer: 'answered' });
  expect(await running.invoke({})).toMatchObject({ error: { errorType: 'Runtime.ExitError' } });
  expect(running.lines()).toContainEqual(expect.stringContaining('too late'));
  expect(await running.invoke({})).toMatchObject({ answer: 'answered' });
});
