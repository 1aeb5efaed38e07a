import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { rollbackConfiguration } from '../../deploy/deployed-stack.ts';
import { REPOSITORY } from '../support/repository.ts';
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
