import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EventDraft, EventSighting } from '../../lib/cluster/finding.ts';
import { ClusterError, type ClusterErrorCode, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { type EventPlanInput, planEvents, writeEvents } from '../../lib/kubernetes/events.ts';

const MINUTE = 60_000;
const start = Date.UTC(2026, 0, 2, 3, 4, 5, 60);

function draft(change: Partial<EventDraft['regarding']> & { note?: string } = {}): EventDraft {
  const { note = 'Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing', ...regarding } = change;
  return {
    regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'cart', uid: 'u-1', ...regarding },
    reason: 'ClusterIPNotAllocated',
    action: 'ClusterIPAllocation',
    note,
  };
}

function plan(drafts: readonly EventDraft[], nowMs = start, given: Partial<EventPlanInput> = {}) {
  const input = { drafts, loop: 'cluster-ip-repair', instance: 'stack-one', previous: {}, nowMs, cap: 100 } as const;
  return planEvents({ ...input, ...given });
}

function manyDrafts(count: number, prefix = 'item'): EventDraft[] {
  return Array.from({ length: count }, (_, index) => draft({ name: `${prefix}-${index}` }));
}

const eventIn = (event: EventDraft, by?: Partial<EventPlanInput>) => plan([event], start, by).writes[0]?.object;

test('an event has the message of upstream, and this project as its reporting controller', () => {
  expect(eventIn(draft({ namespace: '' }))?.metadata.namespace).toBe('default');
  expect(eventIn(draft({ resourceVersion: '77' }))).toEqual({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: expect.stringMatching(/^cart\.[0-9a-f]{16}$/), namespace: 'shop' },
    eventTime: '2026-01-02T03:04:05.060000Z',
    reportingController: 'kube-bootstrap-controller/cluster-ip-repair',
    reportingInstance: 'stack-one',
    type: 'Warning',
    reason: 'ClusterIPNotAllocated',
    action: 'ClusterIPAllocation',
    note: 'Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing',
    regarding: { ...draft().regarding, resourceVersion: '77' },
  });
});

test('the note of an event is cut to at most 1,024 bytes, but not within a character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 2_000 }), (note) => {
      const cut = eventIn(draft({ note }))?.note ?? '';
      const bytes = Buffer.byteLength(cut);
      expect(note.startsWith(cut)).toBe(true);
      expect(bytes).toBeLessThanOrEqual(1_024);
      expect(bytes > 1_020 || cut === note).toBe(true);
    }),
  );
});

test('the reporting instance of an event has at most 128 bytes', () => {
  expect(eventIn(draft(), { instance: 'é'.repeat(100) })?.reportingInstance).toBe('é'.repeat(64));
});

test('the name of an event is always a DNS subdomain', () => {
  const odd = fc.oneof(fc.string({ maxLength: 300 }), fc.stringMatching(/^[A-Za-z0-9.-]{0,300}$/));
  fc.assert(
    fc.property(odd, (name) => {
      const event = eventIn(draft({ name }))?.metadata.name ?? '';
      expect(event.length).toBeLessThanOrEqual(253);
      expect(event).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    }),
    { numRuns: 500 },
  );
});

test('the name of an event is the same in every pass, and is different for another object, note, loop or stack', () => {
  const names = [
    eventIn(draft()),
    eventIn(draft({ uid: 'u-2' })),
    eventIn(draft({ namespace: 'else' })),
    eventIn(draft({ note: 'something else' })),
    eventIn({ ...draft(), reason: 'ClusterIPOutOfRange' }),
    eventIn(draft(), { loop: 'node-port-repair' }),
    eventIn(draft(), { instance: 'stack-two' }),
  ].map((event) => event?.metadata.name);
  expect(new Set(names).size).toBe(names.length);
  expect(plan([draft({ resourceVersion: '78' })], start + MINUTE).writes[0]?.object.metadata.name).toBe(names[0]);
});

test('an event is written at its first and second occurrence, and then every 30 minutes while its cause persists', () => {
  const written: string[] = [];
  let previous: Readonly<Record<string, EventSighting>> = {};
  for (let minute = 0; minute <= 66; minute += 3) {
    const { writes, sightings } = plan([draft()], start + minute * MINUTE, { previous });
    written.push(...writes.map(({ object }) => `minute ${minute}: ${object.series?.count}`));
    previous = sightings;
  }
  expect(written).toEqual(['minute 0: undefined', 'minute 3: 2', 'minute 33: 12', 'minute 63: 22']);
});

test('a pass counts an event once even if several findings of the pass cause it', () => {
  const { writes, sightings } = plan([draft(), draft()]);
  expect(writes).toHaveLength(1);
  expect(Object.values(sightings)).toEqual([{ count: 1, lastSeenAtMs: start, lastWrittenAtMs: start }]);
});

test('the count of an event is reset if its cause is absent for more than an hour', () => {
  const { sightings } = plan([draft()]);
  expect(plan([], start + 60 * MINUTE, { previous: sightings }).sightings).toEqual(sightings);
  expect(plan([], start + 61 * MINUTE, { previous: sightings }).sightings).toEqual({});
});

test('a pass writes at most the maximum number of events, and counts the other events', () => {
  expect(plan(manyDrafts(20), start, { cap: 20 })).toMatchObject({ writes: { length: 20 }, dropped: 0 });
  expect(plan(manyDrafts(250), start, { cap: 20 })).toMatchObject({ writes: { length: 20 }, dropped: 230 });
});

test('the run record remembers at most 300 events, and each pass writes at most the maximum number of events', () => {
  const pass = fc.record({ count: fc.nat({ max: 600 }), prefix: fc.constantFrom('a', 'b'), minutes: fc.nat(90) });
  const passes = fc.array(pass, { maxLength: 6 });
  fc.assert(
    fc.property(passes, fc.integer({ min: 1, max: 400 }), (all, cap) => {
      let previous: Readonly<Record<string, EventSighting>> = {};
      let nowMs = start;
      for (const { count, prefix, minutes } of all) {
        nowMs += minutes * MINUTE;
        const { writes, sightings, dropped } = plan(manyDrafts(count, prefix), nowMs, { previous, cap });
        expect(writes.length).toBeLessThanOrEqual(cap);
        expect(Object.keys(sightings).length).toBeLessThanOrEqual(300);
        expect(dropped).toBeLessThanOrEqual(count);
        previous = sightings;
      }
    }),
    { numRuns: 20, examples: [[[301, 302, 303].map((count) => ({ count, prefix: 'a', minutes: 0 })), 301]] },
  );
});

test('if the run record is full, new events replace events whose cause has ended', () => {
  const old = plan(manyDrafts(300, 'old'), start, { cap: 300 });
  const { writes, sightings } = plan(manyDrafts(5, 'new'), start + MINUTE, { previous: old.sightings });
  expect(writes).toHaveLength(5);
  expect(Object.keys(sightings)).toHaveLength(300);
  for (const { object } of writes) expect(sightings).toHaveProperty([object.metadata.name]);
});

/**
 * Returns a Kubernetes client. Its creates have these outcomes in turn, and after the last one always the last one; its patches
 * have the outcome `invalid`.
 */
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

test('if an event cannot be written, the other events are written, and a later pass writes the missing event', async () => {
  const { port, calls } = portAnswering('Forbidden', 'invalid', 'created');
  const report = await writeEvents(port, plan(manyDrafts(12)));
  expect(report).toMatchObject({ written: 10, dropped: 0, errors: [{ code: 'Forbidden' }, { code: 'Rejected' }] });
  expect(Object.keys(report.sightings)).toHaveLength(10);
  expect(calls()).toBe(12);
});

test('if the write of an event fails, the run record keeps the earlier count and last write time of that event', async () => {
  const { port } = portAnswering();
  const first = plan([draft()]);
  const report = await writeEvents(port, plan([draft()], start + MINUTE, { previous: first.sightings }));
  const before = Object.values(first.sightings)[0];
  expect(Object.values(report.sightings)).toEqual([{ ...before, lastSeenAtMs: start + MINUTE }]);
  expect(report.errors).toHaveLength(1);
});

const FATAL = ['Unauthorized', 'Throttled', 'Unavailable', 'TlsFailure', 'DeadlineExceeded'] as const;
test.each(FATAL)('after the error %s, a pass writes no further event but does not fail', async (code) => {
  const { port, calls } = portAnswering(code);
  const report = await writeEvents(port, plan(manyDrafts(50)));
  expect(report).toMatchObject({ written: 0, sightings: {} });
  expect(report.errors[0]).toMatchObject({ code });
  expect(calls()).toBeLessThanOrEqual(4);
});
