import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  parameterFaults,
  parametersInForce,
  parametersPage,
  resetParameters,
  stackTags,
  templateParameters,
} from '../../deploy/parameters.ts';

interface TemplateParameter {
  readonly Default: string;
  readonly AllowedPattern: string;
  readonly ConstraintDescription: string;
}

function inTemplate(values?: Readonly<Record<string, string>>): Readonly<Record<string, TemplateParameter>> {
  return templateParameters(values) as unknown as Record<string, TemplateParameter>;
}

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

  test('of the template have defaults that its patterns accept, and none is of the tool alone', () => {
    const accepted = Object.entries(inTemplate()).filter(([, one]) => new RegExp(one.AllowedPattern).test(one.Default));
    expect(accepted.map(([name]) => name)).toEqual(Object.keys(inTemplate()));
    expect(inTemplate()).not.toHaveProperty('RollbackMinutes');
  });

  test('of the template have the values in force as their defaults', () => {
    const { values } = parametersInForce({}, 'prod', ['loopMemory=512']);
    expect(inTemplate(values)).toMatchObject({
      LoopMemory: { Default: '512' },
      RepairMemory: { Default: '512' },
      SecretsPrefix: { Default: 'kube-bootstrap-controller/prod/' },
    });
  });

  test.each([
    ['tags', '', {}],
    ['tags', 'team=platform,cost-center=1 2', { team: 'platform', 'cost-center': '1 2' }],
    ['tags', 'formula=a=b', { formula: 'a=b' }],
  ])('%s=%s are the tags of the stack', (name, value, tags) => {
    expect(stackTags({ [name]: value })).toEqual(tags);
  });

  test.each([
    ['VpcSubnetIds', 'subnet-1,subnet-2'],
    ['VpcSecurityGroupIds', 'sg-1'],
    ['TableName', 'my.table-1'],
    ['WebIdentityServers', 'https://203.0.113.10:6443,https://*.example.com'],
    ['AssumableRoleArns', 'arn:aws:iam::123456789012:role/a,arn:aws-cn:iam::123456789012:role/path/b'],
    ['RolePath', '/platform/kbc/'],
  ])('the pattern of %s accepts %s', (name, value) => {
    expect(value).toMatch(new RegExp(inTemplate()[name]?.AllowedPattern ?? '$ '));
  });

  test.each([
    ['a list with spaces', 'VpcSubnetIds', 'subnet-1, subnet-2', 'no spaces'],
    ['the ARN of a table', 'TableName', 'arn:aws:dynamodb:eu-west-1:123456789012:table/t', 'not its ARN'],
    ['the ARN of something else', 'AlarmTopicArn', 'arn:aws:sqs:eu-west-1:1:q', 'begins with arn:aws:sns:'],
    ['a flag that is none', 'Alarms', 'yes', 'write true or false'],
    ['a prefix like a path', 'SecretsPrefix', '/clusters/', 'without a "/" before it'],
    ['too little concurrency', 'TickConcurrency', '1', 'write a number from 2 to 1000'],
    ['a message without clusters', 'ClustersPerTick', '0', 'write a number from 1 to 16'],
    ['a retention that CloudWatch does not know', 'LogRetentionDays', '8', 'that CloudWatch Logs accepts: 1, 3, 5'],
    ['too little memory', 'LoopMemory', '64', 'from 128 to 10240'],
    ['too much memory', 'RepairMemory', '10241', 'from 128 to 10240'],
    ['a path without its end', 'RolePath', '/platform', 'begins and ends with "/"'],
    ['admission of another word', 'Admission', 'true', 'write on or off'],
    ['another answer to failures', 'AdmissionOnFailure', 'ignore', 'write refuse or allow'],
    ['a deadline of the whole timeout', 'AdmissionDeadlineSeconds', '30', 'from 1 to 28'],
    ['another store', 'AdmissionTokenStore', 'vault', 'write secretsManager or ssm'],
    ['no concurrency', 'AdmissionConcurrency', '0', 'from 1 to 9999, or none'],
  ])('CloudFormation refuses %s: %s=%s', (_what, name, value, fix) => {
    const { AllowedPattern = '', ConstraintDescription } = inTemplate()[name] ?? {};
    expect(value).not.toMatch(new RegExp(AllowedPattern));
    expect(ConstraintDescription).toContain(fix);
  });

  test('a name that is no parameter is refused', () => {
    const { values } = parametersInForce({}, 'dev', ['alarmTopic=x']);
    expect(parameterFaults(values, 'dev')).toMatch(/^alarmTopic is not a parameter; there are table, /);
  });

  test('a stage that would make the name of a function too long is refused', () => {
    const { values } = parametersInForce({}, 'dev');
    expect(parameterFaults(values, 'a'.repeat(19))).toBeUndefined();
    expect(parameterFaults(values, 'a'.repeat(20))).toContain('write at most 19 letters');
  });
});

describe('a deployment that does not name a parameter', () => {
  const options = { stack: 'kube-bootstrap-controller-prod', options: { stage: 'prod', param: ['alarms=false'] } };
  const deployedWith = (given: readonly string[]) => {
    const parameters = inTemplate(parametersInForce({}, 'prod', given).values);
    return Object.fromEntries(Object.entries(parameters).map(([name, { Default }]) => [name, Default]));
  };
  const reset = (before: readonly string[], now: readonly string[]) => {
    const { values, requested } = parametersInForce({}, 'prod', now);
    return resetParameters(deployedWith(before), { Parameters: inTemplate(values), requested }, options);
  };

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
    const { values, requested } = parametersInForce({}, 'prod');
    expect(resetParameters({}, { Parameters: inTemplate(values), requested }, options)).toBeUndefined();
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
