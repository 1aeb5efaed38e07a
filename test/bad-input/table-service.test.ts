import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { createTable } from '../../local/create-table.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { type Fault, type FaultProxy, none, serviceError, startFaultProxy, throttle } from '../support/fault-proxy.ts';
import { runningTableServer } from '../support/running-table-server.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';
import { aMisbehavingWorld, type MisbehavingWorld, type OpenTable } from './misbehaving-world.ts';

/** The number of attempts that the client makes for a call. */
const ATTEMPTS = 3;

const server = runningTableServer();
let proxy: FaultProxy;
let proxied: DynamoDBClient;
let tables = 0;
/** The name of the table that passes use. */
let tableName: string;
let world: MisbehavingWorld;

beforeEach(async () => {
  tables += 1;
  const ownName = `table-${tables}`;
  tableName = ownName;
  await createTable(server.client, ownName);
  proxy = await startFaultProxy(server.endpoint);
  afterThisTest(proxy.close);
  proxied = testDynamoClient(proxy.endpoint, { maxAttempts: ATTEMPTS });
  afterThisTest(() => proxied.destroy());
  const own = { nowMs: () => 0, newWriteId: randomUUID };
  const never = new AbortController().signal;
  const openIn = (client: DynamoDBClient, name: () => string): OpenTable => {
    return (deadline = never) => dynamoDbTable({ ...own, client, tableName: name(), deadline });
  };
  world = await aMisbehavingWorld({
    seen: openIn(proxied, () => tableName),
    direct: openIn(server.client, () => ownName),
  });
});

/** Returns a fault: the table gives no reply until the deadline of the pass. */
const hang: Fault = async () => {
  world.expireDeadlines();
  return { hang: true };
};

describe.each(LOOPS)('an invocation of %s that fails changes nothing, and the next invocation succeeds', (loop) => {
  test.each<[string, () => void, string, RegExp]>([
    [
      'the table is missing',
      () => {
        tableName = 'nowhere';
      },
      'TableMissing',
      /Table "nowhere" was not found in region eu-test-1.*deploy the stack that creates it, or correct the name/,
    ],
    [
      'the table throttles the invocation',
      () => proxy.plan('Query', ...throttle(ATTEMPTS)),
      'Throttled',
      /try again in a moment; if this continues, raise the capacity limits/,
    ],
    [
      'the table does not answer',
      () => proxy.plan('Query', hang),
      'DeadlineExceeded',
      /dynamodb:Query on table "table-\d+".*aborted at its deadline.*try again/,
    ],
  ])('an invocation fails and changes nothing, and the next one succeeds, if %s', async (_, happens, code, pattern) => {
    const ownName = tableName;
    const before = await world.state();
    happens();

    await expect(world.tick(loop)).rejects.toMatchObject({ code, message: expect.stringMatching(pattern) });

    expect(world.telemetry.lines).toEqual([
      { level: 'error', message: 'invocation failed', fields: { errors: [expect.stringMatching(pattern)] } },
    ]);
    expect(await world.record(loop)).toBeUndefined();
    expect(await world.state()).toEqual(before);

    tableName = ownName;
    expect(await world.tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
    expect(await world.state()).not.toEqual(before);
  });
});

test.each(LOOPS)('a pass of %s does not begin if the table throttles the read of the run record', async (loop) => {
  proxy.plan('GetItem', ...throttle(ATTEMPTS));
  await world.expectFailedPass(loop, /^Throttled: /);
  expect(await world.record(loop)).toBeUndefined();
  await world.expectNextPass(loop);
});

describe('a pass that fails halfway changes nothing, and the next one succeeds', () => {
  test.each<[string, Loop, () => [string, ...Fault[]], string, RegExp]>([
    [
      'the table throttles the read of the range',
      'cluster-ip-repair',
      () => ['GetItem', none, ...throttle(ATTEMPTS)],
      'Throttled',
      /^(\w+: )?unable to refresh the service IP block: /,
    ],
    [
      'the table throttles the write of the range',
      'cluster-ip-repair',
      () => ['PutItem', ...throttle(ATTEMPTS)],
      'Throttled',
      /^(\w+: )?unable to persist the updated service IP allocations: .*may or may not have happened; try again in a moment/,
    ],
    [
      'the table denies the write of the range',
      'node-port-repair',
      () => ['PutItem', serviceError(400, 'AccessDeniedException')],
      'AccessDenied',
      /^(\w+: )?unable to persist the updated port allocations: .*allow dynamodb:PutItem on this table/,
    ],
    [
      'the table fails during the write of the leases',
      'kubernetes-service',
      () => ['PutItem', ...Array.from({ length: ATTEMPTS }, () => serviceError(500, 'InternalServerError'))],
      'Unavailable',
      /dynamodb:PutItem .*may or may not have happened; try again/,
    ],
    [
      'the table does not answer the second read of the leases',
      'kubernetes-service',
      () => ['GetItem', none, none, hang],
      'DeadlineExceeded',
      /dynamodb:GetItem .*aborted at its deadline/,
    ],
  ])('a pass fails and changes nothing, and the next pass succeeds, if %s', async (_, loop, plan, code, pattern) => {
    proxy.plan(...plan());
    await world.expectFailedPass(loop, pattern);
    await world.expectFirstFailure(loop, code, pattern);
    await world.expectNextPass(loop);
  });
});
