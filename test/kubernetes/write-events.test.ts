import { describe, expect, test } from '@jest/globals';
import type { EventDraft } from '../../lib/cluster/finding.ts';
import { ClusterError, type ClusterErrorCode, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { planEvents, writeEvents } from '../../lib/kubernetes/events.ts';

const start = Date.UTC(2026, 0, 2);

function plan(count: number, previous = {}, nowMs = start) {
  const drafts = Array.from({ length: count }, (_, index): EventDraft => {
    const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: `s-${index}`, uid: `u-${index}` };
    return { regarding, reason: 'PortNotAllocated', action: 'PortAllocation', note: `port ${30_000 + index}` };
  });
  return planEvents({ drafts, loop: 'node-port-repair', instance: 'stack', previous, nowMs, cap: 100 });
}

/** Returns a port that answers creates with these outcomes in turn, repeats the last one, and answers patches as invalid. */
function portAnswering(...answers: readonly ('created' | 'invalid' | ClusterErrorCode)[]) {
  let calls = 0;
  const create = async () => {
    const outcome = answers[Math.min(calls, answers.length - 1)] ?? 'invalid';
    calls += 1;
    if (outcome !== 'created' && outcome !== 'invalid') throw new ClusterError(outcome, 'the reason');
    return { outcome, message: 'the reason' };
  };
  const mergePatch = async () => ({ outcome: 'invalid', message: 'the reason' });
  return { port: { create, mergePatch } as unknown as ClusterPort, calls: () => calls };
}

describe('an event that cannot be written', () => {
  test('other events are written after an event that cannot be written, which stays due', async () => {
    const { port, calls } = portAnswering('Forbidden', 'invalid', 'created');
    const report = await writeEvents(port, plan(12));
    expect(report).toMatchObject({ written: 10, dropped: 0, errors: [{ code: 'Forbidden' }, { code: 'Rejected' }] });
    expect(Object.keys(report.sightings)).toHaveLength(10);
    expect(calls()).toBe(12);
  });

  test('an event that cannot be written keeps its earlier sightings', async () => {
    const { port } = portAnswering();
    const first = plan(1);
    const report = await writeEvents(port, plan(1, first.sightings, start + 60_000));
    const before = Object.values(first.sightings)[0];
    expect(Object.values(report.sightings)).toEqual([{ ...before, lastSeenAtMs: start + 60_000 }]);
    expect(report.errors).toHaveLength(1);
  });

  test.each<ClusterErrorCode>(['Unauthorized', 'Throttled', 'Unavailable', 'TlsFailure', 'DeadlineExceeded'])(
    'the error %s ends the writing of events, but does not fail the pass',
    async (code) => {
      const { port, calls } = portAnswering(code);
      const report = await writeEvents(port, plan(50));
      expect(report).toMatchObject({ written: 0, sightings: {} });
      expect(report.errors[0]).toMatchObject({ code });
      expect(calls()).toBeLessThanOrEqual(4);
    },
  );
});
