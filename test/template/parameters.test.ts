import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  parameterFaults,
  parametersInForce,
  parametersPage,
  resetParameters,
  stackParameters,
  templateParameters,
} from '../../deploy/parameters.ts';

describe('parameters', () => {
  test('of the command line come before the block of the stage, and that before the block "default"', () => {
    const blocks = {
      default: { logLevel: 'INFO', table: null, logRetentionDays: 7 },
      prod: { logLevel: 'WARN', tickConcurrency: 50 },
    };
    const { values, requested } = parametersInForce(blocks, 'prod', ['tickConcurrency=100', 'tags=a=b']);
    expect(values).toMatchObject({ logLevel: 'WARN', tickConcurrency: '100', logRetentionDays: '7', tags: 'a=b' });
    expect(values).toMatchObject({ table: '', alarms: 'true', secretsPrefix: 'kube-bootstrap-controller/prod/' });
    expect([...requested].sort()).toEqual(['logLevel', 'logRetentionDays', 'tags', 'tickConcurrency']);
  });

  test('of the template have defaults that its patterns accept, and are those that a deployment passes', () => {
    const inTemplate = templateParameters() as Record<string, { Default: string; AllowedPattern: string }>;
    for (const { Default, AllowedPattern } of Object.values(inTemplate)) {
      expect(Default).toMatch(new RegExp(AllowedPattern));
    }
    expect(Object.keys(stackParameters(parametersInForce({}, 'dev').values))).toEqual(Object.keys(inTemplate));
    expect(inTemplate).not.toHaveProperty('RollbackMinutes');
  });

  test.each<[string, Readonly<Record<string, string>>]>([
    ['none at all', {}],
    ['a network', { vpcSubnetIds: 'subnet-1,subnet-2', vpcSecurityGroupIds: 'sg-1' }],
    ['a table', { table: 'my.table-1' }],
    ['API servers', { webIdentityServers: 'https://203.0.113.10:6443,https://*.example.com' }],
    ['roles', { assumableRoleArns: 'arn:aws:iam::123456789012:role/a,arn:aws-cn:iam::123456789012:role/path/b' }],
    ['tags', { tags: 'team=platform,cost-center=1 2' }],
    ['a role path', { rolePath: '/platform/kbc/' }],
  ])('are right: %s', (_what, given) => {
    expect(parameterFaults({ ...parametersInForce({}, 'dev').values, ...given }, 'dev')).toBeUndefined();
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['a name that is none', { alarmTopic: 'x' }, 'alarmTopic: is not a parameter; there are table, '],
    ['subnets without security groups', { vpcSubnetIds: 'subnet-1' }, 'one is set without the other'],
    ['security groups without subnets', { vpcSecurityGroupIds: 'sg-1' }, 'one is set without the other'],
    ['a list with spaces', { vpcSubnetIds: 'subnet-1, subnet-2', vpcSecurityGroupIds: 'sg-1' }, 'no spaces'],
    ['the ARN of a table', { table: 'arn:aws:dynamodb:eu-west-1:123456789012:table/t' }, 'not its ARN'],
    ['the ARN of something else', { alarmTopicArn: 'arn:aws:sqs:eu-west-1:1:q' }, 'begins with arn:aws:sns:'],
    ['a flag that is none', { alarms: 'yes' }, 'alarms: is "yes"; write true or false'],
    ['a prefix like a path', { secretsPrefix: '/clusters/' }, 'without a "/" before it'],
    ['too little concurrency', { tickConcurrency: '1' }, 'write a number from 2 to 1000'],
    ['a message without clusters', { clustersPerTick: '0' }, 'write a number from 1 to 16'],
    ['a retention that CloudWatch does not know', { logRetentionDays: '8' }, 'that CloudWatch Logs accepts: 1, 3, 5'],
    ['too little memory', { loopMemory: '64' }, 'from 128 to 10240'],
    ['too much memory', { repairMemory: '10241' }, 'from 128 to 10240'],
    ['a path without its end', { rolePath: '/platform' }, 'begins and ends with "/"'],
    ['admission of another word', { admission: 'true' }, 'write on or off'],
    ['another answer to failures', { admissionOnFailure: 'ignore' }, 'write refuse or allow'],
    ['a deadline of the whole timeout', { admissionDeadlineSeconds: '30' }, 'from 1 to 28'],
    ['another store', { admissionTokenStore: 'vault' }, 'write secretsManager or ssm'],
    ['no concurrency', { admissionConcurrency: '0' }, 'from 1 to 9999, or none'],
  ])('are not right: %s', (_what, given, fix) => {
    const faults = parameterFaults({ ...parametersInForce({}, 'dev').values, ...given }, 'dev');
    expect(faults).toMatch(/^parameters: 1 fault\n/);
    expect(faults).toContain(fix);
  });

  test('a stage that would make the name of a function too long is refused', () => {
    const { values } = parametersInForce({}, 'dev');
    expect(parameterFaults(values, 'a'.repeat(19))).toBeUndefined();
    expect(parameterFaults(values, 'a'.repeat(20))).toContain('write at most 19 letters');
  });
});

describe('a deployment that does not name a parameter', () => {
  const options = { stack: 'kube-bootstrap-controller-prod', given: ['--stage prod', '--param alarms=false'] };
  const deployedWith = (given: readonly string[]) => stackParameters(parametersInForce({}, 'prod', given).values);
  const reset = (before: readonly string[], now: readonly string[]) =>
    resetParameters(deployedWith(before), parametersInForce({}, 'prod', now), options);

  test.each([
    ['admission=on'],
    ['table=some-table'],
    ['vpcSubnetIds=subnet-1'],
    ['vpcSecurityGroupIds=sg-1'],
    ['secretsPrefix=clusters/'],
    ['assumableRoleArns=arn:aws:iam::123456789012:role/a'],
    ['admissionEndpoint=apiGateway'],
  ])('is refused when the stack was deployed with %s, and the command that keeps it is printed', (pair) => {
    expect(reset([pair], [])).toContain(`npm run deploy -- --stage prod --param alarms=false --param ${pair}`);
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ['the parameter is named again', ['admission=on'], ['admission=on']],
    ['it is reset on purpose', ['admission=on', 'table=t12'], ['admission=off', 'table=']],
    ['it harms nothing', ['logLevel=DEBUG', 'tickConcurrency=50'], []],
    ['it is new', [], ['admission=on']],
  ])('continues when %s', (_, before, now) => {
    expect(reset(before, now)).toBeUndefined();
  });

  test('continues when there is no stack yet, and when the stack knows no such parameter', () => {
    expect(resetParameters({}, parametersInForce({}, 'prod'), options)).toBeUndefined();
  });

  test('names every parameter that it would reset', () => {
    expect(reset(['admission=on', 'table=t12'], [])).toBe(
      [
        'The stack kube-bootstrap-controller-prod was deployed with parameters that this deployment does not name and would reset:',
        '  table: t12 -> (empty)',
        '  admission: on -> off',
        'To keep them, run this command, or write them under "params" in serverless.yml:',
        '  npm run deploy -- --stage prod --param alarms=false --param table=t12 --param admission=on',
        'To change one, name it with its new value: --param table=',
      ].join('\n'),
    );
  });
});

test('docs/parameters.md is what npm run docs writes', () => {
  const page = readFileSync(path.join(import.meta.dirname, '../../docs/parameters.md'), 'utf8');
  expect(page).toBe(parametersPage());
});
