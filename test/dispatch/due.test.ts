import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isDue, isWithoutAnswer, spacingMs } from '../../lib/dispatch/due.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { DispatchError } from '../../lib/runtime/deadline.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';

const specWith = (loop: Loop, seconds: number) => aClusterSpec({ intervalSeconds: { [loop]: seconds } });

test('a loop is due if the recorded start of its last pass is in the future', () => {
  const timing = { nowMs: 1_000_000, last: { startedAtMs: 1_005_000 }, backsOff: true };
  expect(isDue('node-port-repair', aClusterSpec(), timing)).toBe(true);
});

test.each([
  { withoutAnswer: 0, afterSeconds: 10 },
  { withoutAnswer: 1, afterSeconds: 10 },
  { withoutAnswer: 2, afterSeconds: 20 },
  { withoutAnswer: 3, afterSeconds: 40 },
  { withoutAnswer: 4, afterSeconds: 60 },
])('after $withoutAnswer unanswered passes, the next is due in $afterSeconds s', ({ withoutAnswer, afterSeconds }) => {
  const last = { startedAtMs: 0, withoutAnswer };
  const spec = specWith('kubernetes-service', 10);
  const isDueAt = (seconds: number, backsOff = true) =>
    isDue('kubernetes-service', spec, { nowMs: seconds * 1000, last, backsOff });
  expect([isDueAt(afterSeconds - 10), isDueAt(afterSeconds)]).toEqual([false, true]);
  expect(isDueAt(10, false)).toBe(true);
});

test.each([
  ['counts as unanswered if the API server gives no answer', new ClusterError('Unavailable', 'refused'), false, true],
  ['counts as unanswered if its deadline expired', new DispatchError('DeadlineExceeded', 'over'), false, true],
  ['counts as answered if a probe was answered', new ClusterError('Unavailable', 'refused'), true, false],
  ['counts as answered if the API server refuses a request', new ClusterError('Forbidden', '403'), false, false],
  ['counts as answered if only the table gives no answer', new TableError('Unavailable', 'no answer'), false, false],
  ['counts as answered if a call to the table timed out', new TableError('DeadlineExceeded', ''), false, false],
  ['counts as answered if nothing failed', undefined, false, false],
])('a pass %s', (_, error, isAnyProbeAnswered, expected) => {
  expect(isWithoutAnswer(error, isAnyProbeAnswered)).toBe(expected);
});

test.each([
  { withoutAnswer: 0, sinceSeconds: 90, spacingSeconds: 10 },
  { withoutAnswer: 1, sinceSeconds: 10, spacingSeconds: 10 },
  { withoutAnswer: 1, sinceSeconds: 70, spacingSeconds: 70 },
  { withoutAnswer: 5, sinceSeconds: 60, spacingSeconds: 60 },
  { withoutAnswer: 5, sinceSeconds: 3_600, spacingSeconds: 120 },
])(
  'after $withoutAnswer unanswered passes in a row, the spacing of passes is $spacingSeconds s if the last pass was $sinceSeconds s ago',
  ({ withoutAnswer, sinceSeconds, spacingSeconds }) => {
    const timing = { nowMs: sinceSeconds * 1000, last: { startedAtMs: 0, withoutAnswer }, backsOff: true };
    const spec = specWith('kubernetes-service', 10);
    expect(spacingMs('kubernetes-service', spec, timing)).toBe(spacingSeconds * 1000);
    expect(spacingMs('kubernetes-service', spec, { ...timing, backsOff: false })).toBe(10_000);
  },
);

test('a loop whose interval is n times the interval of its schedule runs at exactly every n-th tick, whatever the jitter of the schedule', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...LOOPS),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.double({ min: -0.2, max: 0.2, noNaN: true }), { minLength: 30, maxLength: 30 }),
      (loop, every, jitter) => {
        const periodMs = SCHEDULE_SECONDS[loop] * 1000;
        const spec = specWith(loop, SCHEDULE_SECONDS[loop] * every);
        const runs: number[] = [];
        let last: { startedAtMs: number } | undefined;
        for (const [tick, offset] of jitter.entries()) {
          const nowMs = (tick + 1 + offset) * periodMs;
          if (isDue(loop, spec, { nowMs, last, backsOff: true })) {
            runs.push(tick);
            last = { startedAtMs: nowMs };
          }
        }
        expect(runs).toEqual(jitter.map((_, tick) => tick).filter((tick) => tick % every === 0));
      },
    ),
  );
});
