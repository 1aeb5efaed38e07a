import { afterEach, expect, test } from '@jest/globals';
import { tokenRequester } from '../../lib/aws/read-kubeconfig.ts';
import { LONGEST_TOKEN } from '../../lib/cluster/bounds.ts';
import { type AwsAnswer, type FakeAws, issuedToken, noAws, startFakeAws, stsError } from '../support/fake-aws.ts';

const AUDIENCE = 'https://203.0.113.10:6443';

let aws: Pick<FakeAws, 'stop'> | undefined;
afterEach(async () => {
  await aws?.stop();
});

async function requested(answer: AwsAnswer) {
  const started = await startFakeAws(() => answer);
  aws = started;
  return { calls: started.calls, token: tokenRequester({})(AUDIENCE) };
}

test('a token of AWS STS is requested for one audience and five minutes', async () => {
  const { calls, token } = await requested(issuedToken('a-token'));
  expect(await token).toBe('a-token');
  expect(calls).toMatchObject([
    {
      action: 'GetWebIdentityToken',
      body: { 'Audience.member.1': AUDIENCE, SigningAlgorithm: 'ES384', DurationSeconds: '300' },
    },
  ]);
});

test.each([
  [
    stsError('OutboundWebIdentityFederationDisabledException'),
    'BadKubeconfig',
    /is disabled in this account\. .*aws iam enable-outbound-web-identity-federation\.$/,
  ],
  [stsError('AccessDenied'), 'BadKubeconfig', /was denied\. Add the audience to the parameter webIdentityServers/],
  [stsError('ExpiredTokenException', 400), 'BadKubeconfig', /could not be authenticated/],
  [stsError('Throttling', 429), 'Throttled', /was throttled/],
  [stsError('InternalFailure', 500), 'Unavailable', /failed \(InternalFailure\)/],
  [issuedToken(''), 'BadKubeconfig', /returned no token/],
])('the request for a token of AWS STS fails after %j with %s', async (answer, code, message) => {
  const { token } = await requested(answer);
  await expect(token).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

test('a token of more than 4 KB from AWS STS is refused', async () => {
  const { token } = await requested(issuedToken('x'.repeat(LONGEST_TOKEN + 1)));
  await expect(token).rejects.toMatchObject({ code: 'BadKubeconfig', message: expect.stringContaining('4097') });
});

test('the error of a request for a token without a network path to AWS STS names the missing endpoint', async () => {
  aws = noAws();
  await expect(tokenRequester({})(AUDIENCE)).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringMatching(
      /^sts:GetWebIdentityToken for audience https:\/\/203.* got no answer .*com\.amazonaws\.eu-test-1\.sts /,
    ),
  });
});
