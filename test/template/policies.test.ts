import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isGranted, type Statement } from '../support/emulator-policy.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

const folder = path.join(import.meta.dirname, '../../deploy/policies');
const read = (name: string): { readonly Version: string; readonly Statement: readonly Statement[] } =>
  JSON.parse(readFileSync(path.join(folder, `${name}.json`), 'utf8'));
/** IAM counts the characters of a managed policy without white space. */
const MOST_CHARACTERS = 6_144;
const STACK = 'kube-bootstrap-controller-prod';
const arn = (service: string, resource: string) => `arn:aws:${service}:eu-west-1:123456789012:${resource}`;

describe.each(readdirSync(folder).map((file) => path.basename(file, '.json')))('the policy %s', (name) => {
  test('fits into a managed policy, and names each action', () => {
    const { Version, Statement } = read(name);
    expect(Version).toBe('2012-10-17');
    expect(JSON.stringify({ Version, Statement }).length).toBeLessThan(MOST_CHARACTERS);
    for (const { Action } of Statement) for (const action of Action) expect(action).toMatch(/^[a-z0-9]+:[A-Z]\w+\*?$/);
  });

  test('reaches nothing of another service of the account', () => {
    const elsewhere = [
      { action: 'dynamodb:PutItem', resource: arn('dynamodb', 'table/orders') },
      { action: 'lambda:InvokeFunction', resource: arn('lambda', 'function:orders-allocate') },
      { action: 'iam:PutRolePolicy', resource: 'arn:aws:iam::123456789012:role/admin' },
      { action: 'secretsmanager:GetSecretValue', resource: arn('secretsmanager', 'secret:orders/db') },
    ];
    expect(elsewhere.filter((call) => isGranted(call, read(name).Statement))).toEqual([]);
  });
});

/** Of each type of resource that a stack has: what CloudFormation calls first in the name of the deployer. */
const CREATES: Readonly<Record<string, readonly [action: string, resource: string]>> = {
  'AWS::ApiGateway::Deployment': ['apigateway:POST', 'arn:aws:apigateway:eu-west-1::/restapis/a/deployments'],
  'AWS::ApiGateway::Method': ['apigateway:PUT', 'arn:aws:apigateway:eu-west-1::/restapis/a/resources/b/methods/POST'],
  'AWS::ApiGateway::Resource': ['apigateway:POST', 'arn:aws:apigateway:eu-west-1::/restapis/a/resources'],
  'AWS::ApiGateway::RestApi': ['apigateway:POST', 'arn:aws:apigateway:eu-west-1::/restapis'],
  'AWS::ApiGateway::Stage': ['apigateway:POST', 'arn:aws:apigateway:eu-west-1::/restapis/a/stages'],
  'AWS::CloudWatch::Alarm': ['cloudwatch:PutMetricAlarm', arn('cloudwatch', `alarm:${STACK}-findings`)],
  'AWS::CloudWatch::CompositeAlarm': ['cloudwatch:PutCompositeAlarm', arn('cloudwatch', `alarm:${STACK}-nothing-ran`)],
  'AWS::CloudWatch::Dashboard': ['cloudwatch:PutDashboard', `arn:aws:cloudwatch::123456789012:dashboard/${STACK}`],
  'AWS::DynamoDB::Table': ['dynamodb:CreateTable', arn('dynamodb', `table/${STACK}`)],
  'AWS::Events::Rule': ['events:PutRule', arn('events', `rule/${STACK}-a`)],
  'AWS::Lambda::EventSourceMapping': ['lambda:CreateEventSourceMapping', '*'],
  'AWS::Lambda::Permission': ['lambda:AddPermission', arn('lambda', `function:${STACK}-allocate`)],
  'AWS::Lambda::Url': ['lambda:CreateFunctionUrlConfig', arn('lambda', `function:${STACK}-admission`)],
  'AWS::SQS::Queue': ['sqs:CreateQueue', arn('sqs', `${STACK}-a`)],
  // osls compiles these.
  'AWS::Lambda::Function': ['lambda:CreateFunction', arn('lambda', `function:${STACK}-allocate`)],
  'AWS::Lambda::LayerVersion': ['lambda:PublishLayerVersion', arn('lambda', `layer:${STACK}-allocator`)],
  'AWS::Lambda::EventInvokeConfig': [
    'lambda:PutFunctionEventInvokeConfig',
    arn('lambda', `function:${STACK}-allocate`),
  ],
  'AWS::Logs::LogGroup': ['logs:CreateLogGroup', arn('logs', `log-group:/aws/lambda/${STACK}-allocate`)],
  'AWS::S3::Bucket': ['s3:CreateBucket', `arn:aws:s3:::${STACK}-serverlessdeploymentbucket`],
};

describe('the policy of deployers', () => {
  const { Statement } = read('deployer');

  test('knows every type of resource that the template has', () => {
    const types = Object.values(uncompiledTemplate().Resources).map(({ Type }) => Type);
    expect([...new Set(types)].filter((type) => !(type in CREATES))).toEqual([]);
  });

  test.each(Object.entries(CREATES))('creates %s', (_type, [action, resource]) => {
    expect(isGranted({ action, resource }, Statement)).toBe(true);
  });

  test.each([`kbc-prod-eu-west-1-allocate`, `${STACK}-AllocateRole-ABC`, `platform/${STACK}-AllocateRole-ABC`])(
    'creates the role %s and passes it to Lambda',
    (role) => {
      for (const action of ['iam:CreateRole', 'iam:PutRolePolicy', 'iam:PassRole']) {
        expect(isGranted({ action, resource: `arn:aws:iam::123456789012:role/${role}` }, Statement)).toBe(true);
      }
    },
  );
});

test.each(['allocate', 'deregister'])('the policy of callers invokes %s, and no loop', (name) => {
  const { Statement } = read('caller');
  const invokes = (one: string) =>
    isGranted({ action: 'lambda:InvokeFunction', resource: arn('lambda', `function:${STACK}-${one}`) }, Statement);
  expect([invokes(name), invokes('kubernetes-service')]).toEqual([true, false]);
});
