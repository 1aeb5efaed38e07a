import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { LOOP_HANDLERS } from '../../local/clock-driven-runner.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';

const FOLDER = join(import.meta.dirname, '../../functions');

test.each(readdirSync(FOLDER))('without TABLE_NAME, function %s fails with an error that names it', async (file) => {
  const { handler } = await import(join(FOLDER, file));
  const invocation = handler({}, { getRemainingTimeInMillis: () => 30_000 });
  await expect(invocation).rejects.toMatchObject({
    code: 'BadEnvironment',
    message: expect.stringContaining('TABLE_NAME'),
  });
});

test.each(LOOPS)('the handler %s runs the loop with the same name, and writes the metrics once', async (loop) => {
  const { environment, telemetry } = aDispatchWorld();
  const context = { getRemainingTimeInMillis: () => 30_000, awsRequestId: 'request-1', environment };
  expect(await LOOP_HANDLERS[loop]({}, context)).toEqual({ passes: 0, failed: 0, skipped: 0 });
  expect(telemetry.invocations).toEqual([{ loop, requestId: 'request-1' }]);
  expect(telemetry.flushes.count).toBe(1);
});
