import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { nextTickMs } from '../../lib/dispatch/due.ts';
import { PASS_BUDGET_MS, type StartDeadline } from '../../lib/runtime/deadline.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import {
  type RunnerClock,
  runOnSchedules,
  type ScheduledHandler,
  scheduledLoops,
} from '../../local/clock-driven-runner.ts';
import { playStory, type StoryEvent } from '../../local/demo.ts';
import type { EmbeddedWorld } from '../../local/local-cluster.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { runnerClock } from './runner-clock.ts';

test('the clock-driven runner invokes every job once in the given order, starts the additional work, and then invokes each job at the multiples of its period', async () => {
  const { clock, signal, run } = runnerClock(40_000);
  const calls: string[] = [];
  const job = (id: string, everyMs: number): ScheduledHandler => ({
    id,
    everyMs,
    invoke: async (tickMs) => void calls.push(`${id}@${tickMs / 1000}`),
  });
  const jobs = [job('slow', 20_000), job('fast', 10_000)];

  const running = runOnSchedules(jobs, clock, signal, async () => void calls.push('additional'));
  await Promise.all([running, run()]);

  expect(calls).toEqual(['slow@0', 'fast@0', 'additional', 'fast@10', 'slow@20', 'fast@20', 'fast@30']);
});

test('the clock-driven runner skips the ticks that are due while a job runs', () => {
  expect([0, 1, 9_999, 10_000, 25_000].map((nowMs) => nextTickMs(10_000, nowMs))).toEqual([
    10_000, 10_000, 10_000, 20_000, 30_000,
  ]);
});

test('the clock-driven runner does not invoke the remaining jobs if the signal aborts during the first invocations', async () => {
  const ended = new AbortController();
  const calls: string[] = [];
  const clock: RunnerClock = { nowMs: () => 0, sleepUntil: async () => undefined };
  const ending: ScheduledHandler = { id: 'a', everyMs: 1, invoke: async () => void ended.abort(calls.push('a')) };

  await runOnSchedules([ending, { ...ending, id: 'b', invoke: async () => void calls.push('b') }], clock, ended.signal);

  expect(calls).toEqual(['a']);
});

test('the clock-driven runner ends with the error of a job that throws, and wakes the other jobs so that they end', async () => {
  const woken: boolean[] = [];
  const clock: RunnerClock = {
    nowMs: () => 0,
    sleepUntil: async (untilMs, signal) => {
      if (untilMs > 1) await once(signal, 'abort').then(() => woken.push(true));
    },
  };
  let calls = 0;
  const breaking = async () => {
    if (++calls > 1) throw new Error('broken');
  };
  const jobs: ScheduledHandler[] = [
    { id: 'a', everyMs: 1, invoke: breaking },
    { id: 'b', everyMs: 10, invoke: async () => undefined },
  ];

  await expect(runOnSchedules(jobs, clock, new AbortController().signal)).rejects.toThrow('broken');
  expect(woken).toEqual([true]);
});

test.each(LOOPS)(
  'in a local run, a pass of %s has the full time limit of its loop, and a tick throws if the cluster is no longer registered',
  async (loop) => {
    const { environment, table, register } = aDispatchWorld();
    const spec = aClusterSpec();
    const limits: number[] = [];
    const startDeadline: StartDeadline = (ms) => {
      limits.push(ms);
      return environment.startDeadline(ms);
    };
    const job = scheduledLoops({ ...environment, startDeadline }, spec).find(({ id }) => id === loop);
    await register(spec);
    await job?.invoke(0);
    expect(limits).toContain(PASS_BUDGET_MS[loop]);
    await updateCluster(table, spec.name, unregistered);
    const message = expect.stringContaining(`${spec.name} is no longer registered`);
    await expect(job?.invoke(10_000)).rejects.toMatchObject({ exitCode: 3, message });
  },
);

test('for each event, the demo prints the result and what to watch for; the demo reports an event that fails, and stops when the signal aborts', async () => {
  const { clock, signal, run } = runnerClock(9_000);
  const lines: string[] = [];
  const print = (...texts: string[]) => void lines.push(...texts.map((text) => `${clock.nowMs() / 1000} ${text}`));
  const event = (at: number, act: StoryEvent['act']) => ({ atSeconds: at, what: `event ${at}`, act, outlook: 'look' });
  const fails = () => Promise.reject(new Error('the server is missing'));
  // `playStory` only passes the world to events, and these events do not use it.
  const stage = { world: {} as EmbeddedWorld, clock, print };
  const playing = playStory([event(1, async () => '10.0.0.7'), event(5, fails), event(9, fails)], stage, signal);
  await Promise.all([playing, run()]);
  expect(lines).toEqual(['1 event 1: 10.0.0.7', '1 look', '5 event 5: not done, the server is missing', '5 look']);
});
