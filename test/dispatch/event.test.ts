import { describe, expect, test } from '@jest/globals';
import { parseEvent } from '../../lib/dispatch/event.ts';

const scheduled = {
  version: '0',
  id: '53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa',
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: '123456789012',
  time: '2026-01-01T12:00:00Z',
  region: 'eu-west-1',
  resources: ['arn:aws:events:eu-west-1:123456789012:rule/every-minute'],
  detail: {},
};

describe('parseEvent', () => {
  test("a schedule's event is for every cluster that is due at its time", () => {
    expect(parseEvent(scheduled)).toEqual({ kind: 'schedule', dueAtMs: Date.parse('2026-01-01T12:00:00Z') });
  });

  test("a queue's event is the bodies of its messages, unread, and whether they were received before", () => {
    const bodies = ['{"schema":1}', 'garbage', 'again'];
    const Records = bodies.map((body, index) => {
      const attributes = { ApproximateReceiveCount: String(index), SenderId: 'x' };
      return { messageId: '1', eventSource: 'aws:sqs', body, ...(index > 0 && { attributes }) };
    });
    const messages = bodies.map((body, index) => ({ body, isRedelivered: index > 1 }));
    expect(parseEvent({ Records })).toEqual({ kind: 'queue', messages });
  });

  test.each([
    { event: {}, asked: { force: false } },
    { event: { force: true }, asked: { force: true } },
    { event: { clusters: ['a', 'b', 'a'] }, asked: { force: false, clusters: ['a', 'b'] } },
    { event: { clusters: ['a'], force: true }, asked: { force: true, clusters: ['a'] } },
  ])('$event is a direct invocation', ({ event, asked }) => {
    expect(parseEvent(event)).toEqual({ kind: 'direct', ...asked });
  });

  test.each([
    { name: 'nothing', event: undefined, fault: 'the event is not of type object' },
    { name: 'text', event: 'tick', fault: 'the event is not of type object' },
    { name: 'a list', event: [], fault: 'the event is not of type object' },
    { name: 'a schedule without a time', event: { ...scheduled, time: 'noon' }, fault: 'detail-type' },
    { name: 'an unknown word', event: { cluster: 'a' }, fault: '"cluster"' },
    { name: 'an empty list of clusters', event: { clusters: [] }, fault: 'clusters names no cluster' },
    {
      name: 'a name that no cluster can have',
      event: { clusters: ['a', 'B!'] },
      fault: 'clusters.1 is not the name of a cluster',
    },
    { name: 'a force that is no yes or no', event: { force: 'yes' }, fault: 'force is not of type boolean' },
    { name: 'an event of nobody known', event: { Records: [{ body: '{}' }] }, fault: '"Records"' },
    { name: 'a queue event without a message', event: { Records: [] }, fault: '"Records"' },
  ])('$name is refused with a valid example', ({ event, fault }) => {
    const parse = () => parseEvent(event);
    expect(parse).toThrow(expect.objectContaining({ code: 'BadEvent' }));
    expect(parse).toThrow('{"clusters": ["name"], "force": true}');
    expect(parse).toThrow(fault);
  });
});
