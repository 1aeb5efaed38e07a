import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { serverClock } from '../../lib/table/dynamodb/server-clock.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { runningTableServer, testDynamoClient } from '../support/test-dynamo-client.ts';

type Reply = readonly [sentAtMs: number, receivedAtMs: number, dateMs: number];
type Middleware = (next: () => Promise<object>) => (args: object) => Promise<object>;

/** Returns a reply: when the request was sent and the reply received, and the date in the reply, in whole seconds. */
const reply = (...times: Reply): Reply => times;

/** Returns the correction of the clock of the host after these replies. */
async function correctionBy(replies: readonly Reply[]): Promise<number> {
  let nowMs = 0;
  const middlewares: Middleware[] = [];
  const middlewareStack = { add: (middleware: Middleware) => middlewares.push(middleware) };
  const clock = serverClock({ middlewareStack } as unknown as DynamoDBClient, () => nowMs);
  for (const [sentAtMs, receivedAtMs, dateMs] of replies) {
    nowMs = sentAtMs;
    const next = async () => {
      nowMs = receivedAtMs;
      return { response: { headers: { date: new Date(dateMs).toUTCString() } } };
    };
    await middlewares[0]?.(next)({});
  }
  expect(clock.nowMs()).toBe(nowMs - clock.skewMs());
  return 0 - clock.skewMs();
}

test.each<[string, Reply[], number]>([
  ['is zero without a reply', [], 0],
  ['is zero if the date is in the same second', [reply(5_100, 5_200, 5_000)], 0],
  ['is zero if the date is between request and reply', [reply(5_100, 9_900, 8_000)], 0],
  ['is positive if the date is after the reply', [reply(5_100, 5_200, 9_000)], 3_800],
  ['is negative if the date is before the request', [reply(5_100, 5_200, 1_000)], -3_100],
  ['does not change if the next date fits', [reply(5_100, 5_200, 6_000), reply(6_900, 6_950, 7_000)], 800],
  ['changes if the next date does not fit', [reply(5_100, 5_200, 60_000), reply(61_100, 61_200, 61_000)], 0],
])('the correction %s', async (_, replies, correctionMs) => {
  expect(await correctionBy(replies)).toBe(correctionMs);
});

test('the corrected clock is wrong by at most the duration of a reply plus a second, which is the precision of a date', async () => {
  const aReply = fc.record({ atMs: fc.nat(1e9), waitMs: fc.nat(50), answerMs: fc.nat(50) });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: -1e6, max: 1e6 }),
      fc.array(aReply, { minLength: 1 }),
      async (aheadMs, times) => {
        const replies = times.map(({ atMs, waitMs, answerMs }) => {
          const writtenAtMs = atMs + waitMs + aheadMs;
          return reply(atMs, atMs + waitMs + answerMs, Math.floor(writtenAtMs / 1000) * 1000);
        });
        const correctionMs = await correctionBy(replies);
        expect(Math.abs(correctionMs - aheadMs)).toBeLessThanOrEqual(1_050);
        expect(Math.abs(correctionMs)).toBeLessThanOrEqual(Math.abs(aheadMs));
      },
    ),
  );
});

const server = runningTableServer();

test('the date of every reply to the client corrects the clock of the host, even if the reply is a refusal', async () => {
  const proxy = await startFaultProxy(server.endpoint);
  afterThisTest(proxy.close);
  const client = testDynamoClient(proxy.endpoint);
  afterThisTest(() => client.destroy());
  const clock = serverClock(client, () => 0);
  expect({ now: clock.nowMs(), skew: clock.skewMs() }).toEqual({ now: 0, skew: 0 });
  proxy.clock.nowMs = () => 90_000;
  const own = { tableName: 'none', nowMs: () => 0, newWriteId: () => 'id' };
  const table = dynamoDbTable({ ...own, client, deadline: new AbortController().signal });
  await expect(table.get('demo', 'key')).rejects.toMatchObject({ code: 'TableMissing' });
  expect({ now: clock.nowMs(), skew: clock.skewMs() }).toEqual({ now: 90_000, skew: -90_000 });
});
