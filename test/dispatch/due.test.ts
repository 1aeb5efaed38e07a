import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/cluster/cluster-spec.ts';
import { isDue, isDueAtEveryTick, isWithoutAnswer, pauseInForce, spacingMs } from '../../lib/dispatch/due.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { DispatchError } from '../../lib/runtime/deadline.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';

const specWith = (loop: Loop, seconds: number) => aClusterSpec({ intervalSeconds: { [loop]: seconds } });

const started = (startedAtMs: number) => ({ startedAtMs });

describe('isDue', () => {
  test.each<{ when: string; loop: Loop; interval: number; since: number | undefined; due: boolean }>([
    { when: 'a loop that never ran', loop: 'system-namespaces', interval: 60, since: undefined, due: true },
    { when: 'a minute later, a little early', loop: 'system-namespaces', interval: 60, since: 59.2, due: true },
    { when: 'the same tick delivered twice', loop: 'system-namespaces', interval: 60, since: 1.5, due: false },
    { when: 'the tick before the one that is due', loop: 'system-namespaces', interval: 120, since: 60.8, due: false },
    { when: 'ten seconds later', loop: 'kubernetes-service', interval: 10, since: 9.4, due: true },
    {
      when: 'every third tick of ten seconds, at the second',
      loop: 'kubernetes-service',
      interval: 30,
      since: 20.3,
      due: false,
    },
    {
      when: 'every third tick of ten seconds, at the third',
      loop: 'kubernetes-service',
      interval: 30,
      since: 29.6,
      due: true,
    },
    { when: 'three minutes later', loop: 'cluster-ip-repair', interval: 180, since: 179, due: true },
    { when: 'a clock that was put back', loop: 'node-port-repair', interval: 180, since: -5, due: true },
  ])('a pass is due, $when: $due', ({ loop, interval, since, due }) => {
    const nowMs = 1_000_000;
    const last = since === undefined ? undefined : started(nowMs - since * 1000);
    expect(isDue(loop, specWith(loop, interval), { nowMs, last, backsOff: true })).toBe(due);
  });

  test.each([
    { withoutAnswer: 0, dueAfterSeconds: 10 },
    { withoutAnswer: 1, dueAfterSeconds: 10 },
    { withoutAnswer: 2, dueAfterSeconds: 20 },
    { withoutAnswer: 3, dueAfterSeconds: 40 },
    { withoutAnswer: 4, dueAfterSeconds: 60 },
    { withoutAnswer: 90, dueAfterSeconds: 60 },
  ])(
    'after $withoutAnswer passes in a row without an answer, the next is due after $dueAfterSeconds s',
    ({ withoutAnswer, dueAfterSeconds }) => {
      const last = { startedAtMs: 0, withoutAnswer };
      const spec = specWith('kubernetes-service', 10);
      const isDueAt = (seconds: number, backsOff = true) =>
        isDue('kubernetes-service', spec, { nowMs: seconds * 1000, last, backsOff });
      expect([isDueAt(dueAfterSeconds - 10), isDueAt(dueAfterSeconds)]).toEqual([false, true]);
      expect(isDueAt(10, false)).toBe(true);
    },
  );

  test.each([
    ['the API server gives no answer', new ClusterError('Unavailable', 'refused'), false, true],
    ['the time of the pass is over', new DispatchError('DeadlineExceeded', 'over'), false, true],
    ['a probe was answered', new ClusterError('Unavailable', 'refused'), true, false],
    ['the API server refuses the pass', new ClusterError('Forbidden', '403'), false, false],
    ['the table gives no answer', new TableError('Unavailable', 'no answer'), false, false],
    ['the table is slow', new TableError('DeadlineExceeded', 'over'), false, false],
    ['nothing failed', undefined, false, false],
  ])('a pass in which %s', (_, error, isAnyProbeAnswered, expected) => {
    expect(isWithoutAnswer(error, isAnyProbeAnswered)).toBe(expected);
  });

  test.each([
    { withoutAnswer: 0, sinceSeconds: 90, spacingSeconds: 10 },
    { withoutAnswer: 1, sinceSeconds: 10, spacingSeconds: 10 },
    { withoutAnswer: 1, sinceSeconds: 70, spacingSeconds: 70 },
    { withoutAnswer: 5, sinceSeconds: 60, spacingSeconds: 60 },
    { withoutAnswer: 5, sinceSeconds: 3_600, spacingSeconds: 120 },
  ])(
    'after $withoutAnswer passes without an answer, the last $sinceSeconds s ago, tries are $spacingSeconds s apart',
    ({ withoutAnswer, sinceSeconds, spacingSeconds }) => {
      const timing = { nowMs: sinceSeconds * 1000, last: { startedAtMs: 0, withoutAnswer }, backsOff: true };
      const spec = specWith('kubernetes-service', 10);
      expect(spacingMs('kubernetes-service', spec, timing)).toBe(spacingSeconds * 1000);
      expect(spacingMs('kubernetes-service', spec, { ...timing, backsOff: false })).toBe(10_000);
    },
  );

  test('a loop runs at exactly every n-th tick, whatever the jitter of its schedule', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...LOOPS),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.double({ min: -0.2, max: 0.2, noNaN: true }), { minLength: 30, maxLength: 30 }),
        (loop, every, jitter) => {
          const periodMs = SCHEDULE_SECONDS[loop] * 1000;
          const spec = specWith(loop, SCHEDULE_SECONDS[loop] * every);
          const runs: number[] = [];
          let last: ReturnType<typeof started> | undefined;
          for (const [tick, offset] of jitter.entries()) {
            const nowMs = (tick + 1 + offset) * periodMs;
            if (isDue(loop, spec, { nowMs, last, backsOff: true })) {
              runs.push(tick);
              last = started(nowMs);
            }
          }
          expect(runs).toEqual(jitter.map((_, tick) => tick).filter((tick) => tick % every === 0));
        },
      ),
    );
  });
});

test('only an interval as short as the schedule is due at every tick', () => {
  expect(isDueAtEveryTick('kubernetes-service', specWith('kubernetes-service', 10))).toBe(true);
  expect(isDueAtEveryTick('kubernetes-service', specWith('kubernetes-service', 20))).toBe(false);
});

describe('pauseInForce', () => {
  const pause = (untilMs: number) => ({ untilMs, reason: 'an upgrade', by: 'ops' });

  test('a pause is in force until its end, and not at it', () => {
    expect(pauseInForce([pause(100)], 99)).toEqual(pause(100));
    expect(pauseInForce([pause(100)], 100)).toBeUndefined();
  });

  test('the first pause in force is returned', () => {
    expect(pauseInForce([pause(50), undefined, pause(200)], 100)).toEqual(pause(200));
    expect(pauseInForce([undefined, undefined], 100)).toBeUndefined();
  });
});
