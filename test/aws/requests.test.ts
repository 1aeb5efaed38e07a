import { describe, expect, test } from '@jest/globals';
import { tokenRequester } from '../../lib/aws/read-kubeconfig.ts';
import type { defaultEventBus } from '../../lib/aws/send-batches.ts';
import { secretTextReader } from '../../lib/aws/store-client.ts';
import { targetGroupReader } from '../../lib/aws/target-group.ts';
import { LONGEST_TOKEN } from '../../lib/util/bounds.ts';
import { bundle } from '../support/bundled-functions.ts';
import {
  type AwsAnswer,
  type AwsCall,
  awsError,
  type FakeAws,
  fakeAws,
  issuedToken,
  noAws,
  stsError,
} from '../support/fake-aws.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const signal = new AbortController().signal;
let aws: FakeAws;

async function read(store: 'secretsManager' | 'ssm', react: (call: AwsCall) => AwsAnswer, requestTimeoutMs = 30_000) {
  await fakeAws(react);
  return secretTextReader(store, { maxAttempts: 1, requestTimeoutMs })('p/admission/demo', signal);
}

test.each([
  ['secretsManager', ({ body }: AwsCall) => ({ body: { SecretString: `text of ${body['SecretId']}` } })],
  ['ssm', ({ body }: AwsCall) => ({ body: { Parameter: { Value: `text of ${body['Name']}` } } })],
] as const)('the text of a secret is read from %s with the name of the secret', async (store, react) => {
  expect(await read(store, react)).toEqual({ outcome: 'read', text: 'text of p/admission/demo' });
});

test.each([
  ['secretsManager', 'ResourceNotFoundException'],
  ['ssm', 'ParameterNotFound'],
] as const)('a secret that does not exist in %s is reported as absent', async (store, name) => {
  expect(await read(store, () => awsError(name, 'there is none'))).toEqual({ outcome: 'absent' });
});

test('the read of a secret fails if the store does not answer in time', async () => {
  expect(await read('ssm', () => ({ hang: true }), 50)).toMatchObject({ outcome: 'failed' });
});

const folder = temporaryFolder();

test('the error code of Parameter Store is recognized although the bundle does not contain the class of the error', async () => {
  await bundle(folder, ['lib/aws/store-client.ts']);
  const bundled: { readonly secretTextReader: typeof secretTextReader } = await import(`${folder}/store-client.mjs`);
  const answers = [awsError('ThrottlingException'), awsError('ParameterNotFound')];
  await fakeAws(() => answers.shift() ?? { hang: true });
  const read = bundled.secretTextReader('ssm', { maxAttempts: 1 });
  expect(await read('a', signal)).toEqual({ outcome: 'failed', reason: 'ThrottlingException' });
  expect(await read('b', signal)).toEqual({ outcome: 'absent' });
});

test('the error code of EventBridge is reported although the bundle does not contain the class of the error', async () => {
  await bundle(folder, ['lib/aws/send-batches.ts']);
  const bundled: { readonly defaultEventBus: typeof defaultEventBus } = await import(`${folder}/send-batches.mjs`);
  await fakeAws(() => awsError('ConcurrentModificationException'));
  const [unsent] = await bundled.defaultEventBus().send([{}], signal);
  expect(unsent?.error.message).toContain('ConcurrentModificationException');
});

describe('a token of AWS STS', () => {
  const AUDIENCE = 'https://203.0.113.10:6443';

  async function token(answer: AwsAnswer) {
    aws = await fakeAws(() => answer);
    return tokenRequester({})(AUDIENCE);
  }

  test('a token of AWS STS is requested for one audience and five minutes', async () => {
    expect(await token(issuedToken('a-token'))).toBe('a-token');
    const body = { 'Audience.member.1': AUDIENCE, SigningAlgorithm: 'ES384', DurationSeconds: '300' };
    expect(aws.calls).toMatchObject([{ action: 'GetWebIdentityToken', body }]);
  });

  test.each([
    ['the account has it disabled', stsError('OutboundWebIdentityFederationDisabledException'), /aws iam enable-out/],
    ['AWS denies it', stsError('AccessDenied'), /was denied\. Add the audience to the parameter webIdentityServers/],
    ['the answer has no token', issuedToken(''), /returned no token/],
    ['the token has more than 4 KB', issuedToken('x'.repeat(LONGEST_TOKEN + 1)), /4097/],
  ])('the request for a token of AWS STS fails if %s', async (_, answer, message) => {
    const error = { code: 'BadKubeconfig', message: expect.stringMatching(message) };
    await expect(token(answer)).rejects.toMatchObject(error);
  });

  test('if the network has no path to AWS STS, the error of a request for a token names the missing VPC endpoint', async () => {
    noAws();
    await expect(tokenRequester({})(AUDIENCE)).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringMatching(
        /^sts:GetWebIdentityToken for audience https:\/\/203.* got no answer .*com\.amazonaws\.eu-test-1\.sts /,
      ),
    });
  });
});

const ARN = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod/0123456789abcdef';

async function targets(answer: AwsAnswer) {
  aws = await fakeAws(() => answer);
  return targetGroupReader()(ARN, signal);
}

const describedTargets = (states: Readonly<Record<string, string>>): AwsAnswer => {
  const members = Object.entries(states).map(
    ([id, state]) =>
      `<member><Target><Id>${id}</Id></Target><TargetHealth><State>${state}</State></TargetHealth></member>`,
  );
  const body = `<DescribeTargetHealthResponse><DescribeTargetHealthResult><TargetHealthDescriptions>
    ${members.join('')}</TargetHealthDescriptions></DescribeTargetHealthResult></DescribeTargetHealthResponse>`;
  return { body };
};

test('the read of a target group returns the addresses of its healthy targets', async () => {
  const states = { '10.9.8.7': 'healthy', '10.9.8.8': 'unhealthy', '10.9.8.9': 'draining', '10.9.8.10': 'healthy' };
  expect(await targets(describedTargets(states))).toEqual({ addresses: ['10.9.8.7', '10.9.8.10'] });
  expect(aws.calls).toMatchObject([{ action: 'DescribeTargetHealth', body: { TargetGroupArn: ARN } }]);
});

test.each(['unavailable', 'of a later version'])(
  'a target with the health state "%s" is omitted, and its health is reported as unavailable',
  async (state) => {
    const found = await targets(describedTargets({ '10.9.8.7': 'healthy', '10.9.8.8': state }));
    expect(found).toEqual({ addresses: ['10.9.8.7'], unread: 'the health of 1 targets is unavailable' });
  },
);

test.each([
  ['TargetGroupNotFound', 400, /there is no such target group\. Correct targetGroupArn/],
  ['AccessDenied', 403, /was denied\. Allow it to the role of this function, or/],
])('the read of a target group fails when AWS answers %s with %d', async (name, status, message) => {
  const error = { code: 'BadKubeconfig', message: expect.stringMatching(message) };
  await expect(targets(stsError(name, status))).rejects.toMatchObject(error);
});
