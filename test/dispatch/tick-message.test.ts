import { describe, expect, test } from '@jest/globals';
import { LOOPS, SCHEDULE_SECONDS } from '../../lib/cluster/cluster-spec.ts';
import { receiveTick, tickBody } from '../../lib/dispatch/event.ts';

const DUE = 1_790_000_000_000;
const body = (overrides: object = {}) =>
  JSON.stringify({ schema: 1, loop: 'kubernetes-service', dueAtMs: DUE, clusters: ['a', 'b'], ...overrides });

describe('a tick in a message', () => {
  test('a tick in a message is JSON with its schema, loop, due time and clusters', () => {
    const tick = { loop: 'kubernetes-service' as const, dueAtMs: DUE, clusters: ['a', 'b'] };
    expect(JSON.parse(tickBody(tick))).toEqual({ schema: 1, ...tick });
    expect(receiveTick(tickBody(tick), 'kubernetes-service', DUE)).toEqual({
      outcome: 'due',
      tick,
    });
  });

  test.each(LOOPS)('a tick of %s is late once the next one was due', (loop) => {
    const intervalMs = SCHEDULE_SECONDS[loop] * 1000;
    expect(receiveTick(body({ loop }), loop, DUE + intervalMs)).toMatchObject({ outcome: 'due' });
    expect(receiveTick(body({ loop }), loop, DUE + intervalMs + 1)).toEqual({
      outcome: 'late',
      lateMs: intervalMs + 1,
      tick: { loop, dueAtMs: DUE, clusters: ['a', 'b'] },
    });
  });

  test('a tick of a suspect is late after half a minute, as the next one comes after it', () => {
    const text = body({ followedUntilMs: DUE });
    expect(receiveTick(text, 'kubernetes-service', DUE + 30_000)).toMatchObject({ outcome: 'due' });
    expect(receiveTick(text, 'kubernetes-service', DUE + 30_001)).toMatchObject({ outcome: 'late' });
  });

  test('a tick in a message may have fields that this version does not know', () => {
    expect(receiveTick(body({ traceId: 'x' }), 'kubernetes-service', DUE)).toMatchObject({ outcome: 'due' });
  });

  test.each([
    { name: 'no JSON', text: '{"schema":1', reason: 'Not a tick message: the event is not of type object' },
    { name: 'empty', text: '', reason: 'Not a tick message: the event is not of type object' },
    { name: 'of another kind', text: '[]', reason: 'Not a tick message: the event is not of type object' },
    {
      name: 'of another version',
      text: body({ schema: 2 }),
      reason: 'Not a tick message: schema is not 1, the one that this version reads',
    },
    {
      name: 'of another loop',
      text: body({ loop: 'node-port-repair' }),
      reason: 'A tick of the loop node-port-repair, but this is kubernetes-service',
    },
    {
      name: 'without a cluster',
      text: body({ clusters: [] }),
      reason: 'Not a tick message: clusters names no cluster',
    },
    {
      name: 'for a name that no cluster can have',
      text: body({ clusters: ['#clusters'] }),
      reason: 'Not a tick message: clusters.0 is not the name of a cluster',
    },
    {
      name: 'due at no time',
      text: body({ dueAtMs: 'noon' }),
      reason: 'Not a tick message: dueAtMs is not of type number',
    },
  ])('a message that is $name is unreadable, and the reason is logged', ({ text, reason }) => {
    expect(receiveTick(text, 'kubernetes-service', DUE)).toEqual({ outcome: 'unreadable', reason });
  });
});
