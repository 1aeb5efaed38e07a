import { expect, test } from '@jest/globals';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import { pause, startDeadline } from '../../lib/runtime/deadline.ts';
import type { InvocationContext } from '../../lib/runtime/invocation.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { unlessAborted } from '../../lib/util/async.ts';
import { aDispatchWorld, aReport, type DispatchWorld } from '../support/dispatch-world.ts';

const handler = loopHandler({ id: 'system-namespaces', run: async () => aReport() });

function contextOf({ environment }: Pick<DispatchWorld, 'environment'>): InvocationContext {
  return { getRemainingTimeInMillis: () => 30_000, environment };
}

test('the handler of a loop logs the delay of its scheduled event', async () => {
  const world = aDispatchWorld();
  world.clock.nowMs += 1_500;
  await handler({ 'detail-type': 'Scheduled Event', time: '2026-01-01T12:00:00Z' }, contextOf(world));
  expect(world.telemetry.logged('invocation ended')).toMatchObject([{ lateMs: 1_500 }]);
});

test.each([2_001, -960_000])(
  'a handler logs and counts a difference of %d ms between the clock of the host and the clock of the table',
  async (skewMs) => {
    const world = aDispatchWorld({ clock: { isMeasured: () => true, skewMs: () => skewMs } });
    await handler({}, contextOf(world));
    expect(world.telemetry.logged("the clock differs from the table's")).toEqual([{ level: 'error', skewMs }]);
    expect(world.telemetry.counters).toMatchObject({ clockSkewed: 1 });
  },
);

test('the handler of a loop has two parameters, because the runtime passes a callback to a handler with three', () => {
  expect(handler).toHaveLength(2);
});

test('if the whole invocation fails, the handler of a loop logs the failure, writes its metrics, and throws the error', async () => {
  const world = aDispatchWorld();
  const list = () => Promise.reject(new TableError('TableMissing', 'there is no table'));
  const environment = { ...world.environment, table: () => ({ ...world.table, list }) };
  await expect(handler({}, contextOf({ environment }))).rejects.toThrow('there is no table');
  expect(world.telemetry.lines).toEqual([
    { level: 'error', message: 'invocation failed', fields: { errors: ['TableMissing: there is no table'] } },
  ]);
  expect(world.telemetry.counters).toEqual({ failures: 1 });
  expect(world.telemetry.flushes.count).toBe(1);
});

test('unlessAborted ignores a failure of the work after the signal has aborted', async () => {
  const controller = new AbortController();
  const work = Promise.withResolvers<never>();
  const left = unlessAborted(controller.signal, () => work.promise);
  controller.abort(new Error('time is over'));
  await expect(left).rejects.toThrow('time is over');
  // An unhandled rejection would end the process of the test.
  work.reject(new Error('too late'));
  await new Promise(setImmediate);
});

test('unlessAborted does not begin the work if the signal has already aborted', async () => {
  let begun = false;
  const work = async () => {
    begun = true;
  };
  await expect(unlessAborted(AbortSignal.abort(new Error('over')), work)).rejects.toThrow('over');
  expect(begun).toBe(false);
});

test('the signal of a deadline aborts with the code DeadlineExceeded', async () => {
  const { signal } = startDeadline(1);
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  expect(signal.reason).toMatchObject({ code: 'DeadlineExceeded' });
});

test('the signal of a cancelled deadline never aborts', async () => {
  const { signal, cancel } = startDeadline(0);
  cancel();
  await new Promise(setImmediate);
  expect(signal.aborted).toBe(false);
});

test.each(['the deadline expires', 'the surrounding work is aborted'])(
  'if %s, the function pause resolves and cancels the timer',
  async (when) => {
    const [own, whole] = [new AbortController(), new AbortController()];
    let cancelled = 0;
    const paused = pause({ signal: own.signal, cancel: () => void cancelled++ }, whole.signal);
    (when === 'the deadline expires' ? own : whole).abort();
    await paused;
    expect(cancelled).toBe(1);
  },
);
