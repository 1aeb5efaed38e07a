import { expect, test } from '@jest/globals';
import { createDynamoClient } from '../../lib/table/dynamodb-table.ts';

const randomly = Math.random;

test('a client has the profile and the time limits of its documentation', async () => {
  const { profile, requestHandler } = createDynamoClient({ region: 'r', profile: 'p' }).config;
  expect(profile).toBe('p');
  expect(await Reflect.get(requestHandler, 'configProvider')).toMatchObject({
    ...{ connectionTimeout: 500, requestTimeout: 1500, socketTimeout: 1500 },
    throwOnRequestTimeout: true,
  });
});

test('a client waits twice as long after each attempt, up to a second', async () => {
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
