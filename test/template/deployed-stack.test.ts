import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Resources, Template } from '../../deploy/cloudformation.ts';
import { nameReplacedResources } from '../../deploy/compiled-template.ts';
import { rollbackConfiguration } from '../../deploy/deployed-stack.ts';
import { versions } from '../../deploy/functions.ts';
import { templateParameters } from '../../deploy/parameters.ts';
import { REPOSITORY } from '../support/repository.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';
import { copySources } from './package-service.ts';
import { COMPOSITES, STACK } from './stack-alarms.ts';

const stack = (Alarms: string) => ({
  arn: `arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/${STACK}/1`,
  parameters: { Alarms },
  outputs: {},
  tags: {},
});

test('an update is rolled back only by alarms that the stack contains', () => {
  const configuration = rollbackConfiguration(STACK, stack('true'), 10);
  expect(configuration?.MonitoringTimeInMinutes).toBe(10);
  const names = COMPOSITES.map(({ AlarmName }) => `arn:aws-cn:cloudwatch:cn-north-1:123456789012:alarm:${AlarmName}`);
  for (const { Arn } of configuration?.RollbackTriggers ?? []) expect(names).toContain(Arn);
  expect(configuration?.RollbackTriggers[0]?.Type).toBe('AWS::CloudWatch::CompositeAlarm');
});

test.each([
  ['the parameter RollbackMinutes is 0', stack('true'), 0],
  ['the stack has no alarms', stack('false'), 10],
  ['the stack does not exist yet', undefined, 10],
])('no alarm watches an update if %s', (_, deployed, minutes) => {
  expect(rollbackConfiguration(STACK, deployed, minutes)).toBeUndefined();
});

test('a deployment without credentials ends before it packages the functions', () => {
  // The functions are missing, so that packaging them would be another error.
  const folder = copySources();
  const program = join(REPOSITORY, 'node_modules/serverless/bin/serverless.js');
  const env = { PATH: process.env['PATH'], HOME: folder, AWS_EC2_METADATA_DISABLED: 'true' };
  const { status, stdout } = spawnSync(process.execPath, [program, 'deploy'], { cwd: folder, env, encoding: 'utf8' });
  expect(stdout).toContain('AWS provider credentials not found');
  expect(status).toBe(1);
});

const ZIPS = { 'allocate.zip': 'a', 'admission.zip': 'b', 'allocator.zip': 'c' };

interface Made {
  readonly admissionVpcEndpointIds?: string;
  readonly zips?: Partial<typeof ZIPS>;
  readonly timeout?: number;
  readonly key?: string;
}

/** Returns the id of the resource that begins with `id`, and all resources. */
function named(id: string, { admissionVpcEndpointIds = '', zips, timeout = 30, key = 'k' }: Made = {}) {
  const hashes: Readonly<Record<string, string>> = { ...ZIPS, ...zips };
  const made = { Timeout: timeout, Code: { S3Key: key }, Layers: [{ Ref: 'AllocatorLambdaLayer' }] };
  const AllocateLambdaFunction = { Type: 'AWS::Lambda::Function', Properties: made };
  const { Resources: others } = uncompiledTemplate();
  const before: Resources = { ...others, ...versions(), AllocateLambdaFunction };
  const template = { Parameters: { ...templateParameters({ admissionVpcEndpointIds }) }, Resources: before };
  const { Resources } = nameReplacedResources<Template>(template, (name) => hashes[name] ?? '');
  const [name = ''] = Object.keys(Resources).filter((one) => one.startsWith(id));
  return { name, Resources };
}

test('the API of the webhook is deployed again if the VPC endpoints in its policy change', () => {
  const names = ['', 'vpce-1', 'vpce-1,vpce-2', ''].map(
    (admissionVpcEndpointIds) => named('AdmissionApiDeployment', { admissionVpcEndpointIds }).name,
  );
  expect(new Set(names).size).toBe(3);
  expect(names[3]).toBe(names[0]);
});

test('the stage of the API refers to the new deployment', () => {
  const { name, Resources } = named('AdmissionApiDeployment', { admissionVpcEndpointIds: 'vpce-1' });
  expect(name).toMatch(/^AdmissionApiDeployment[0-9a-f]{8}$/);
  expect(Resources['AdmissionApiStage']?.Properties['DeploymentId']).toEqual({ Ref: name });
});

const version = (made?: Made) => named('AllocateVersion', made).name;

test('a function gets a new version if its code, its layer or its settings change', () => {
  const made = [{}, { zips: { 'allocate.zip': 'x' } }, { zips: { 'allocator.zip': 'x' } }, { timeout: 31 }];
  expect(new Set(made.map(version)).size).toBe(made.length);
});

test('a function keeps its version if only another function, or the location of its own package, changes', () => {
  expect(version({ key: 'other', zips: { 'admission.zip': 'x' } })).toBe(version());
});

test('the alias of a function refers to its version', () => {
  const { name, Resources } = named('AllocateVersion');
  expect(Resources['AllocateAlias']?.Properties['FunctionVersion']).toEqual({ 'Fn::GetAtt': [name, 'Version'] });
});
