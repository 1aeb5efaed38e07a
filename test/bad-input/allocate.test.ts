import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { type Fault, type FaultProxy, serviceError, startFaultProxy, throttle } from '../support/fault-proxy.ts';
import { countedWriteIds } from '../support/memory-table.ts';
import { pickLowest } from '../support/ranges.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

/** Attempts of a call, as the client makes them. */
const ATTEMPTS = 3;
const NONE: Fault = { kind: 'none' };

const request: AllocateRequest = {
  requestId: 'r1',
  cluster: CLUSTER,
  operation: 'allocate',
  items: [
    { range: 'serviceips', next: true },
    { range: 'servicenodeports', value: 30_001 },
  ],
};
/** Begun, two ranges, done. */
const WRITES = 4;

let server: TableServer;
let proxy: FaultProxy;
let direct: DynamoDBClient;
let proxied: DynamoDBClient;
let tables = 0;
let world: AllocateWorld;
/** One invocation whose calls meet what the proxy has planned. */
let ask: (event: unknown) => Promise<Answer>;
let runOut: () => void;

beforeAll(async () => {
  server = await startTableServer({ key: 'test' });
  direct = testDynamoClient(server.endpoint);
});

afterAll(async () => {
  direct.destroy();
  await server.close();
});

beforeEach(async () => {
  tables += 1;
  const tableName = `table-${tables}`;
  await createTable(direct, tableName, { pollMs: 1 });
  proxy = await startFaultProxy(server.endpoint);
  proxied = testDynamoClient(proxy.endpoint, { maxAttempts: ATTEMPTS });
  const { environment, clock, deadlines } = aDispatchWorld();
  const newWriteId = countedWriteIds();
  const open = (client: DynamoDBClient, deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs: () => clock.nowMs, newWriteId });
  world = await anAllocateWorld({ table: open(direct, new AbortController().signal), clock });
  await world.repair(clock.nowMs);
  const handler = allocation({ pause: () => Promise.resolve(), pick: pickLowest });
  ask = (event) =>
    handler(event, {
      getRemainingTimeInMillis: () => 30_000,
      environment: { ...environment, table: (signal) => open(proxied, signal) },
    });
  runOut = () => {
    for (const { expire } of deadlines) expire();
  };
});

afterEach(async () => {
  proxied.destroy();
  await proxy.close();
});

const again = (fault: Fault): Fault[] => Array.from({ length: ATTEMPTS }, () => fault);
const whole = { '10.0.0.17': 'r1', '30001': 'r1' };
const done = { outcome: 'done', items: [{ value: '10.0.0.17' }, { value: 30_001 }] };

describe.each(Array.from({ length: WRITES }, (_, write) => ({ write: write + 1 })))(
  'when the table fails at write $write of a request',
  ({ write }) => {
    const plan = (...faults: Fault[]) => {
      proxy.plan('PutItem', ...Array<Fault>(write - 1).fill(NONE), ...faults);
    };

    test.each<[string, () => Fault[], string]>([
      ['by throttling', () => throttle(ATTEMPTS), 'Throttled'],
      ['by 500', () => again(serviceError(500, 'InternalServerError')), 'Unavailable'],
      ['by breaking connections', () => again({ kind: 'dropRequest' }), 'Unavailable'],
      ['by denying it', () => [serviceError(400, 'AccessDeniedException')], 'AccessDenied'],
      ['by answering never', () => [{ kind: 'hang', meanwhile: () => runOut() }], 'DeadlineExceeded'],
    ])('%s, the error asks for another invocation, which completes it', async (_, faults, code) => {
      plan(...faults());
      await expect(ask(request)).rejects.toMatchObject({
        code,
        message: expect.stringMatching(
          new RegExp(`^${code}: request r1 was not finished, invoke it again with the same requestId: it resumes`),
        ),
      });
      expect(await ask(request)).toMatchObject(done);
      expect(await world.taken()).toEqual(whole);
    });

    test('by a reply that is lost, it is done all the same', async () => {
      plan({ kind: 'dropReply' });
      expect(await ask(request)).toMatchObject(done);
      expect(await world.taken()).toEqual(whole);
      expect(await ask(request)).toMatchObject({ ...done, replayed: true });
    });

    test('by a reply that is lost, while the same request comes again, both have one answer', async () => {
      let twin: Answer | undefined;
      const meanwhile = async () => {
        twin = await world.ask(request);
      };
      plan({ kind: 'dropReply', meanwhile });
      const answer = await ask(request).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'Contended' });
        return ask(request);
      });
      expect(answer).toMatchObject(done);
      expect(twin).toMatchObject(done);
      expect(await world.taken()).toEqual(whole);
    });
  },
);

test.each<[string, string, () => Promise<unknown>, string]>([
  ['the record of the request', 'requests/r1', () => ask(request), 'Item demo/requests/r1 does not parse: state is '],
  [
    'a range',
    'ranges/serviceips',
    () => ask({ ...request, requestId: 'r2' }),
    'Item demo/ranges/serviceips does not parse: range is not of type string',
  ],
])('%s that does not parse is not changed, and reported', async (_, key, invoke, told) => {
  const previous = await world.table.get(CLUSTER, key);
  const schema = previous?.schema ?? 1;
  await world.table.put({ cluster: CLUSTER, key, schema, value: { nonsense: true } }, previous);
  const before = await world.items();
  await expect(invoke()).rejects.toMatchObject({ code: 'Corrupt', message: expect.stringContaining(told) });
  expect(await world.items()).toEqual(before);
});

test('A stored answer that does not parse is reported, and not changed', async () => {
  await ask(request);
  const previous = await world.table.get(CLUSTER, 'requests/r1');
  if (previous === undefined) throw new Error('expected a record');
  const value = { ...(previous.value as object), answer: '{"outcome":"perhaps"}' };
  await world.table.put({ ...previous, value }, previous);
  await expect(ask(request)).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringMatching(
      /Item demo\/requests\/r1 does not parse: its answer is not valid.*remove it to start again/,
    ),
  });
});

test('A record of a later version is not changed, and reported', async () => {
  await world.table.put({ cluster: CLUSTER, key: 'requests/r1', schema: 2, value: {} }, undefined);
  await expect(ask(request)).rejects.toMatchObject({ code: 'SchemaTooNew' });
});
