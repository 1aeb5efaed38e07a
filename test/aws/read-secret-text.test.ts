import { afterEach, expect, test } from '@jest/globals';
import { secretTextReader } from '../../lib/aws/store-client.ts';
import { type AwsAnswer, type AwsCall, awsError, type FakeAws, startFakeAws } from '../support/fake-aws.ts';

let aws: FakeAws | undefined;
afterEach(async () => {
  await aws?.stop();
});

async function read(store: 'secretsManager' | 'ssm', react: (call: AwsCall) => AwsAnswer, requestTimeoutMs = 30_000) {
  aws = await startFakeAws(react);
  const reader = secretTextReader(store, { maxAttempts: 1, requestTimeoutMs });
  return reader('p/admission/demo', new AbortController().signal);
}

test.each([
  ['secretsManager', ({ body }: AwsCall) => ({ body: { SecretString: `text of ${body['SecretId']}` } })],
  ['ssm', ({ body }: AwsCall) => ({ body: { Parameter: { Value: `text of ${body['Name']}` } } })],
] as const)('a text comes from %s by its name', async (store, react) => {
  expect(await read(store, react)).toEqual({ outcome: 'read', text: 'text of p/admission/demo' });
});

test.each([
  ['secretsManager', 'ResourceNotFoundException'],
  ['ssm', 'ParameterNotFound'],
] as const)('a secret that %s does not have is absent', async (store, name) => {
  expect(await read(store, () => awsError(name, 'there is none'))).toEqual({ outcome: 'absent' });
});

test('any other answer is a failure, and only its name is reported', async () => {
  expect(await read('secretsManager', () => awsError('AccessDeniedException', 'not with this key'))).toEqual({
    outcome: 'failed',
    reason: 'AccessDeniedException',
  });
});

test('a store that does not answer in time is a failure', async () => {
  expect(await read('ssm', () => ({ hang: true }), 50)).toMatchObject({ outcome: 'failed' });
});
