import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { isGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { filesInRepository } from '../support/repository.ts';

/** The most characters of a managed policy. IAM does not count white space. */
const MOST_CHARACTERS = 6_144;
const STACK = 'kube-bootstrap-controller-prod';
const arn = (service: string, resource: string) => `arn:aws:${service}:eu-west-1:123456789012:${resource}`;

describe.each(filesInRepository('deploy/policies').map((file) => path.basename(file, '.json')))(
  'the policy %s',
  (name) => {
    test('the policy is not larger than a managed policy can be, and allows no wildcard for a whole service', () => {
      const { Version, Statement } = shippedPolicy(name);
      expect(Version).toBe('2012-10-17');
      expect(JSON.stringify({ Version, Statement }).length).toBeLessThan(MOST_CHARACTERS);
      for (const { Action } of Statement)
        for (const action of Action) expect(action).toMatch(/^[a-z0-9]+:[A-Z]\w+\*?$/);
    });

    test('the policy grants no access to resources of other applications in the account', () => {
      const elsewhere = [
        { action: 'dynamodb:PutItem', resource: arn('dynamodb', 'table/orders') },
        { action: 'lambda:InvokeFunction', resource: arn('lambda', 'function:orders-allocate') },
        { action: 'iam:PutRolePolicy', resource: 'arn:aws:iam::123456789012:role/admin' },
        { action: 'secretsmanager:GetSecretValue', resource: arn('secretsmanager', 'secret:orders/db') },
      ];
      expect(elsewhere.filter((call) => isGranted(call, shippedPolicy(name).Statement))).toEqual([]);
    });
  },
);

const { Statement } = shippedPolicy('deployer');

// CloudFormation cuts the name of the stack in a long name to 24 or 25 characters.
test.each([
  `kbc-prod-eu-west-1-allocate`,
  `${STACK.slice(0, 24)}-SystemNamespacesRole-A`,
  `platform/${STACK}-AllocateRole-A`,
])('the policy of deployers allows the creation of the role %s and passing it to Lambda', (role) => {
  for (const action of ['iam:CreateRole', 'iam:PutRolePolicy', 'iam:PassRole']) {
    expect(isGranted({ action, resource: `arn:aws:iam::123456789012:role/${role}` }, Statement)).toBe(true);
  }
});

test.each(['allocate:live', 'deregister'])('the caller policy allows the invocation of %s, and of no loop', (name) => {
  const { Statement } = shippedPolicy('caller');
  const invokes = (one: string) =>
    isGranted({ action: 'lambda:InvokeFunction', resource: arn('lambda', `function:${STACK}-${one}`) }, Statement);
  expect([name, 'allocate', 'kubernetes-service'].map(invokes)).toEqual([true, false, false]);
});

test.each([
  ...[...LOOPS, 'allocate:live', 'deregister', 'doctor'].map((name) => {
    return ['lambda:InvokeFunction', arn('lambda', `function:${STACK}-${name}`)] as const;
  }),
  ['dynamodb:DescribeTimeToLive', arn('dynamodb', `table/${STACK}`)],
  ['elasticloadbalancing:DescribeTargetHealth', arn('elasticloadbalancing', 'targetgroup/prod/0123456789abcdef')],
])('the policy of operators allows the call %s on %s', (action, resource) => {
  expect(isGranted({ action, resource }, shippedPolicy('operator').Statement)).toBe(true);
});

test('the policy deployer-boundary denies exactly two things: writes to roles without a permissions boundary, and the removal of a boundary', () => {
  const [within, removal, ...others] = shippedPolicy('deployer-boundary').Statement;
  expect(others).toEqual([]);
  expect(within).toMatchObject({
    Effect: 'Deny',
    Action: ['iam:CreateRole', 'iam:PutRolePermissionsBoundary', 'iam:PutRolePolicy'],
    Resource: ['*'],
    Condition: { StringNotLike: { 'iam:PermissionsBoundary': expect.stringMatching(/^arn:aws:iam::\*:policy\//) } },
  });
  expect(removal).toMatchObject({ Effect: 'Deny', Action: ['iam:DeleteRolePermissionsBoundary'], Resource: ['*'] });
});
