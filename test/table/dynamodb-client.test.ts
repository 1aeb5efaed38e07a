import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from '@jest/globals';
import { createDynamoClient, createTable } from '../../lib/table/dynamodb-client.ts';

const randomly = Math.random;

describe('A client', () => {
  test('a client has the profile and the time limits of its documentation', async () => {
    const { profile, requestHandler } = createDynamoClient({ region: 'r', profile: 'p' }).config;
    expect(profile).toBe('p');
    expect(await Reflect.get(requestHandler, 'configProvider')).toMatchObject({
      ...{ connectionTimeout: 500, requestTimeout: 1500, socketTimeout: 1500 },
      throwOnRequestTimeout: true,
    });
  });

  test('a client waits twice as long after each attempt, at most a second', async () => {
    const strategy = await createDynamoClient({ region: 'r' }).config.retryStrategy();
    const backoff = Reflect.get(strategy, 'retryBackoffStrategy');
    const waits = () => [0, 1, 2, 9].map((attempt) => backoff.computeNextBackoffDelay(attempt));
    try {
      Math.random = () => 1;
      expect(waits()).toEqual([50, 100, 200, 1000]);
      backoff.setDelayBase(400);
      expect(waits()).toEqual([400, 800, 1000, 1000]);
      Math.random = () => 0.5;
      expect(waits()).toEqual([200, 400, 500, 500]);
    } finally {
      Math.random = randomly;
    }
  });
});

/** A client whose table has one status after the other; the last one stays. */
function clientOf(statuses: readonly unknown[], create: () => unknown = () => ({})) {
  let polls = 0;
  const send = async (command: unknown) => {
    if (command instanceof CreateTableCommand) return create();
    const status = statuses[Math.min(polls++, statuses.length - 1)];
    if (status instanceof Error) throw status;
    return status === undefined ? {} : { Table: { TableStatus: status } };
  };
  const client = { send, config: { region: async () => 'r' } } as unknown as DynamoDBClient;
  return { client, polls: () => polls };
}

function failing(name: string): () => never {
  return () => {
    throw Object.assign(new Error('no'), { name });
  };
}

describe('createTable', () => {
  test.each([
    ['creates it', () => ({})],
    ['finds it', failing('ResourceInUseException')],
  ])('%s and waits until it is active', async (_, create) => {
    const { client, polls } = clientOf([undefined, 'CREATING', 'ACTIVE', 'ACTIVE'], create);
    await createTable(client, 't', { pollMs: 0 });
    expect(polls()).toBe(3);
  });

  test.each([
    ['dynamodb:CreateTable', clientOf(['ACTIVE'], failing('AccessDeniedException'))],
    ['dynamodb:DescribeTable', clientOf([Object.assign(new Error('no'), { name: 'AccessDeniedException' })])],
  ])('reports that %s was denied', async (action, { client }) => {
    const message = expect.stringContaining(`${action} on table "t" in region r was denied`);
    await expect(createTable(client, 't', { pollMs: 0 })).rejects.toMatchObject({ code: 'AccessDenied', message });
  });

  test('gives up after 120 polls', async () => {
    const { client, polls } = clientOf(['CREATING']);
    await expect(createTable(client, 't', { pollMs: 0.5 })).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('is not active after 0.06 s'),
    });
    expect(polls()).toBe(120);
  });
});
