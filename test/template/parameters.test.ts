import { expect, test } from '@jest/globals';
import {
  keptParameters,
  parameterFaults,
  parametersInForce,
  parameterTable,
  stackTags,
  templateParameters,
} from '../../deploy/parameters.ts';

type TemplateParameter = Readonly<Record<'Default' | 'AllowedPattern' | 'ConstraintDescription', string>>;

const inTemplate = (values?: Readonly<Record<string, string>>) =>
  templateParameters(values) as Readonly<Record<string, TemplateParameter>>;

test('parameters on the command line override parameters of the stage, and parameters of the stage override parameters in the block "default"', () => {
  const blocks = {
    default: { logLevel: 'INFO', table: null, logRetentionDays: 7 },
    prod: { logLevel: 'WARN', tickConcurrency: 50 },
  };
  const { values, requested } = parametersInForce(blocks, 'prod', ['tickConcurrency=100', 'tags=a=b']);
  expect(values).toMatchObject({ logLevel: 'WARN', tickConcurrency: '100', logRetentionDays: '7', tags: 'a=b' });
  expect(values).toMatchObject({ table: '', alarms: 'true', secretsPrefix: 'kube-bootstrap-controller/prod/' });
  expect([...requested].sort()).toEqual(['logLevel', 'logRetentionDays', 'tags', 'tickConcurrency']);
});

test('the pattern of each template parameter accepts the default of the parameter, and the template omits parameters that only the tool uses', () => {
  const accepted = Object.entries(inTemplate()).filter(([, one]) => new RegExp(one.AllowedPattern).test(one.Default));
  expect(accepted.map(([name]) => name)).toEqual(Object.keys(inTemplate()));
  expect(inTemplate()).not.toHaveProperty('RollbackMinutes');
});

test('the template has the values of the stage and the command line as the defaults of its parameters', () => {
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
])('the parameter %s=%s sets the tags of the stack', (name, value, tags) => {
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
  ['an invalid flag', 'Alarms', 'yes', 'write true or false'],
  ['a prefix that begins with a slash', 'SecretsPrefix', '/clusters/', 'without a "/" before it'],
  ['too little concurrency', 'TickConcurrency', '1', 'write a number from 2 to 1000'],
  ['zero clusters per message', 'ClustersPerTick', '0', 'write a number from 1 to 16'],
  ['a retention that CloudWatch does not know', 'LogRetentionDays', '8', 'that CloudWatch Logs accepts: 1, 3, 5'],
  ['too little memory', 'LoopMemory', '64', 'from 128 to 10240'],
  ['too much memory', 'RepairMemory', '10241', 'from 128 to 10240'],
  ['a path without a slash at its end', 'RolePath', '/platform', 'begins and ends with "/"'],
  ['an invalid value of admission', 'Admission', 'true', 'write on or off'],
  ['an unknown value for the behaviour on failures', 'AdmissionOnFailure', 'ignore', 'write refuse or allow'],
  ['a deadline as long as the timeout', 'AdmissionDeadlineSeconds', '30', 'from 1 to 28'],
  ['another store', 'AdmissionTokenStore', 'vault', 'write secretsManager or ssm'],
  ['no concurrency', 'AdmissionConcurrency', '0', 'from 1 to 9999, or none'],
])('CloudFormation refuses %s: %s=%s', (_what, name, value, fix) => {
  const { AllowedPattern = '', ConstraintDescription } = inTemplate()[name] ?? {};
  expect(value).not.toMatch(new RegExp(AllowedPattern));
  expect(ConstraintDescription).toContain(fix);
});

test('a stage that would make the name of a function too long is refused', () => {
  const { values } = parametersInForce({}, 'dev');
  expect(parameterFaults(values, 'a'.repeat(19))).toBeUndefined();
  expect(parameterFaults(values, 'a'.repeat(20))).toContain('write at most 19 letters');
});

test('an update keeps the value of each template parameter that the update does not set', () => {
  const ofTemplate = Object.fromEntries(Object.keys(inTemplate()).map((name) => [name, 'another']));
  const { LoopMemory: _, ...expected } = ofTemplate;
  const deployed = { ...ofTemplate, OfALaterVersion: 'x', RollbackMinutes: '5' };
  expect(keptParameters(deployed, parametersInForce({}, 'prod', ['loopMemory=256']))).toEqual(expected);
});

test.each<[string, readonly string[], readonly string[], object]>([
  ['changes parameters that it sets', ['admission=on', 'table=t12'], ['admission=off'], { TableName: 't12' }],
  ['resets parameters that it sets to their default', ['table=t12'], ['table='], {}],
  ['adds new parameters', [], ['admission=on'], {}],
])('an update %s', (_, before, now, expected) => {
  const of = (given: readonly string[]) => parametersInForce({}, 'prod', given);
  const deployed = Object.entries(inTemplate(of(before).values)).map(([name, { Default }]) => [name, Default]);
  expect(keptParameters(Object.fromEntries(deployed), of(now))).toEqual(expected);
});

test('the table of parameters includes the parameters that are not in the template', () => {
  expect(parameterTable().join('\n')).toContain('| `rollbackMinutes` |');
});
