import { expect, test } from '@jest/globals';
import { parseEvent, receivedTicks, tickBody } from '../../lib/dispatch/event.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';

const scheduled = {
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  time: '2026-01-01T12:00:00Z',
  resources: ['arn:aws:events:eu-west-1:123456789012:rule/every-minute'],
  detail: {},
};

test('the event of a queue is parsed into messages with their bodies, and a message is marked if it was received before', () => {
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
  { event: { clusters: ['a', 'b', 'a'] }, asked: { force: false, clusters: ['a', 'b'] } },
  { event: { clusters: ['a'], force: true }, asked: { force: true, clusters: ['a'] } },
])('$event is a direct invocation', ({ event, asked }) => {
  expect(parseEvent(event)).toEqual({ kind: 'direct', ...asked });
});

test.each([
  ['a missing event', undefined, 'the event is not of type object'],
  ['a scheduled event without a valid time', { ...scheduled, time: 'noon' }, 'detail-type'],
  ['an unknown field', { cluster: 'a' }, '"cluster"'],
  ['an empty list of clusters', { clusters: [] }, 'clusters names no cluster'],
  ['an invalid cluster name', { clusters: ['a', 'B!'] }, 'clusters.1 is not the name of a cluster'],
  ['an event of an unknown source', { Records: [{ body: '{}' }] }, '"Records"'],
])('%s is refused, and the error contains an example of a valid event', (_, event, fault) => {
  const parse = () => parseEvent(event);
  expect(parse).toThrow(expect.objectContaining({ code: 'BadEvent' }));
  expect(parse).toThrow('{"clusters": ["name"], "force": true}');
  expect(parse).toThrow(fault);
});

const LOOP = 'kubernetes-service';
const DUE = 1_790_000_000_000;
const tick = { loop: LOOP, dueAtMs: DUE, clusters: ['a', 'b'] } as const;
const body = (overrides: object = {}) => JSON.stringify({ schema: 1, ...tick, ...overrides });

/** Parses messages. Returns their ticks, except dropped ones, and the log lines and counters. */
function receive(text: string | readonly string[], nowMs: number, loop: Loop = LOOP) {
  const telemetry = recordingTelemetry();
  const messages = [text].flat().map((each) => ({ body: each, isRedelivered: false }));
  const { ticks } = receivedTicks(loop, messages, nowMs, telemetry);
  return { ticks, lines: telemetry.lines, counters: telemetry.counters };
}

test('a queue message contains a tick as JSON with schema, loop, due time and clusters', () => {
  expect(JSON.parse(tickBody(tick))).toEqual({ schema: 1, ...tick });
  expect(receive(tickBody(tick), DUE)).toEqual({ ticks: [tick], lines: [], counters: {} });
});

test.each(LOOPS)('a tick of %s is dropped as late once the next tick is due', (loop) => {
  const intervalMs = SCHEDULE_SECONDS[loop] * 1000;
  expect(receive(body({ loop }), DUE + intervalMs, loop).ticks).toEqual([{ ...tick, loop }]);
  const fields = { lateMs: intervalMs + 1, clusters: tick.clusters };
  expect(receive(body({ loop }), DUE + intervalMs + 1, loop)).toEqual({
    ticks: [],
    lines: [{ level: 'warn', message: 'tick dropped', fields }],
    counters: { lateTicks: 1 },
  });
});

test('a tick of a suspect cluster is dropped only if it is more than 30 s late, because a dropped tick queues no next tick', () => {
  const text = body({ followedUntilMs: DUE });
  expect(receive(text, DUE + 30_000).ticks).toEqual([{ ...tick, followedUntilMs: DUE }]);
  expect(receive(text, DUE + 30_001)).toMatchObject({ ticks: [], counters: { lateTicks: 1 } });
});

const NOT_A_TICK = 'Not a tick message: ';
test.each([
  ['not JSON', '{"schema":1', `${NOT_A_TICK}the event is not of type object`],
  ['of another version', body({ schema: 2 }), `${NOT_A_TICK}schema is not 1, the one that this version reads`],
  ['of another loop', body({ loop: 'x' }), 'A tick of the loop x, but this is kubernetes-service'],
  ['for an invalid name', body({ clusters: ['#clusters'] }), `${NOT_A_TICK}clusters.0 is not the name of a cluster`],
  ['without a valid due time', body({ dueAtMs: 'noon' }), `${NOT_A_TICK}dueAtMs is not of type number`],
])('a message that is %s is dropped, the reason is logged, and other messages are processed', (_, text, reason) => {
  expect(receive([text, body()], DUE)).toEqual({
    ticks: [tick],
    lines: [{ level: 'error', message: 'message dropped', fields: { errors: [reason] } }],
    counters: { unreadableTicks: 1 },
  });
});
