import { afterEach, expect, test } from '@jest/globals';
import { targetGroupReader } from '../../lib/aws/target-group.ts';
import { type AwsAnswer, type FakeAws, startFakeAws, stsError } from '../support/fake-aws.ts';

const ARN = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod/0123456789abcdef';

let aws: FakeAws;
afterEach(() => aws.stop());

async function targets(answer: AwsAnswer) {
  aws = await startFakeAws(() => answer);
  return targetGroupReader()(ARN, AbortSignal.timeout(60_000));
}

function targetHealth(states: Readonly<Record<string, string>>): AwsAnswer {
  const members = Object.entries(states).map(
    ([id, state]) =>
      `<member><Target><Id>${id}</Id></Target><TargetHealth><State>${state}</State></TargetHealth></member>`,
  );
  return {
    body: `<DescribeTargetHealthResponse><DescribeTargetHealthResult><TargetHealthDescriptions>
      ${members.join('')}</TargetHealthDescriptions></DescribeTargetHealthResult></DescribeTargetHealthResponse>`,
  };
}

test('a target group has the addresses of its healthy targets', async () => {
  const states = { '10.9.8.7': 'healthy', '10.9.8.8': 'unhealthy', '10.9.8.9': 'draining', '10.9.8.10': 'healthy' };
  expect(await targets(targetHealth(states))).toEqual(['10.9.8.7', '10.9.8.10']);
  expect(aws.calls).toMatchObject([{ action: 'DescribeTargetHealth', body: { TargetGroupArn: ARN } }]);
});

test.each([
  ['TargetGroupNotFound', 400, 'BadKubeconfig', /there is no such target group\. Correct targetGroupArn/],
  ['AccessDenied', 403, 'BadKubeconfig', /was denied\. Allow it to the role of this function\.$/],
  ['Throttling', 429, 'Throttled', /was throttled/],
])('the read of a target group fails when AWS answers %s with %d', async (name, status, code, message) => {
  await expect(targets(stsError(name, status))).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});
