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

test('if a handler is not killed at its limit, its remaining time becomes negative', async () => {
  const running = run('async (_, context) => { while (context.getRemainingTimeInMillis() >= 0); return "late"; }', 5);
  expect(await running.invoke({}, { killedAfterMs: 60_000 })).toMatchObject({ answer: 'late' });
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
