import { describe, expect, test } from '@jest/globals';
import type { EventDraft } from '../../lib/cluster/finding.ts';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterErrorCode, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { planEvents } from '../../lib/kubernetes/events.ts';
import { writeEvents } from '../../lib/kubernetes/write-events.ts';

const start = Date.UTC(2026, 0, 2);

function plan(count: number, previous = {}, nowMs = start) {
  const drafts = Array.from({ length: count }, (_, index): EventDraft => {
    const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: `s-${index}`, uid: `u-${index}` };
    return { regarding, reason: 'PortNotAllocated', action: 'PortAllocation', note: `port ${30_000 + index}` };
  });
  return planEvents({ drafts, loop: 'node-port-repair', instance: 'stack', previous, nowMs, cap: 100 });
}

type Answer =
  | Awaited<ReturnType<ClusterPort['create']>>['outcome']
  | Awaited<ReturnType<ClusterPort['mergePatch']>>['outcome'];

/** Answers creates and patches so, one after the other; the last one again and again. */
function portAnswering(answers: { create?: readonly (Answer | ClusterErrorCode)[]; patch?: readonly Answer[] }) {
  const calls: string[] = [];
  const next = (kind: string, list: readonly string[], name: string, content: unknown) => {
    const made = calls.filter((call) => call.startsWith(kind)).length;
    calls.push(`${kind} ${name.split('.')[0]} ${JSON.stringify(content) ?? ''}`.trim());
    const outcome = list[Math.min(made, list.length - 1)] ?? 'nothing';
    if (/^[A-Z]/.test(outcome)) throw new ClusterError(outcome as ClusterErrorCode, 'told so');
    return Promise.resolve({ outcome, message: 'told so' });
  };
  const port = {
    create: async (object: KubernetesObject & { series?: unknown }) =>
      next('create', answers.create ?? [], object.metadata.name, object.series),
    mergePatch: async (ref: { name: string }, patch: unknown) => next('patch', answers.patch ?? [], ref.name, patch),
  };
  return { port: port as unknown as ClusterPort, calls };
}

const series = (count: number, time = '2026-01-02T00:00:00.000000Z') =>
  `{"count":${count},"lastObservedTime":"${time}"}`;

describe('writing an event', () => {
  test('of a first sighting is one create', async () => {
    const { port, calls } = portAnswering({ create: ['created'] });
    const planned = plan(1);
    await expect(writeEvents(port, planned)).resolves.toEqual({
      written: 1,
      dropped: 0,
      errors: [],
      sightings: planned.sightings,
    });
    expect(calls).toEqual(['create s-0']);
  });

  test('that is there although it was forgotten becomes its series', async () => {
    const { port, calls } = portAnswering({ create: ['alreadyExists'], patch: ['updated'] });
    await expect(writeEvents(port, plan(1))).resolves.toMatchObject({ written: 1, errors: [] });
    expect(calls).toEqual(['create s-0', `patch s-0 {"series":${series(2)}}`]);
  });

  test('of a later sighting is one patch of its series alone', async () => {
    const { port, calls } = portAnswering({ patch: ['updated'] });
    const second = plan(1, plan(1).sightings, start + 60_000);
    await expect(writeEvents(port, second)).resolves.toMatchObject({ written: 1, errors: [] });
    expect(calls).toEqual([`patch s-0 {"series":${series(2, '2026-01-02T00:01:00.000000Z')}}`]);
  });

  test('that was deleted by then is a create with its count', async () => {
    const { port, calls } = portAnswering({ patch: ['notFound'], create: ['created'] });
    const second = plan(1, plan(1).sightings);
    await expect(writeEvents(port, second)).resolves.toMatchObject({ written: 1, errors: [] });
    expect(calls[1]).toBe(`create s-0 ${series(2)}`);
  });

  test('in a namespace that is going away is dropped, and not tried again soon', async () => {
    const { port } = portAnswering({ create: ['namespaceUnavailable'] });
    const planned = plan(2);
    await expect(writeEvents(port, planned)).resolves.toEqual({
      written: 0,
      dropped: 2,
      errors: [],
      sightings: planned.sightings,
    });
  });
});

describe('an event that cannot be written', () => {
  test('does not keep the others from being written, and is due again', async () => {
    const { port, calls } = portAnswering({ create: ['Forbidden', 'invalid', 'created'] });
    const report = await writeEvents(port, plan(12));
    expect(report).toMatchObject({ written: 10, dropped: 0, errors: [{ code: 'Forbidden' }, { code: 'Rejected' }] });
    expect(Object.keys(report.sightings)).toHaveLength(10);
    expect(calls).toHaveLength(12);
  });

  test('keeps what was known of it', async () => {
    const { port } = portAnswering({ patch: ['invalid'] });
    const first = plan(1);
    const report = await writeEvents(port, plan(1, first.sightings, start + 60_000));
    const before = Object.values(first.sightings)[0];
    expect(Object.values(report.sightings)).toEqual([{ ...before, lastSeenAtMs: start + 60_000 }]);
    expect(report.errors).toHaveLength(1);
  });

  test.each<ClusterErrorCode>(['Unauthorized', 'Throttled', 'Unavailable', 'TlsFailure', 'DeadlineExceeded'])(
    'because of %s ends the writing of events, never the pass',
    async (code) => {
      const { port, calls } = portAnswering({ create: [code] });
      const report = await writeEvents(port, plan(50));
      expect(report).toMatchObject({ written: 0, sightings: {} });
      expect(report.errors[0]).toMatchObject({ code });
      expect(calls.length).toBeLessThanOrEqual(4);
    },
  );
});
