import {
  CloudFormationClient,
  type CloudFormationClientConfig,
  DescribeStacksCommand,
} from '@aws-sdk/client-cloudformation';
import { RELEASE_FAILING } from './alarm-list.ts';

type DeployedStack = NonNullable<Awaited<ReturnType<typeof describeStack>>>;

/** Reads a stack. Returns `undefined` if the stack does not exist. */
export async function describeStack(name: string, config: CloudFormationClientConfig) {
  const client = new CloudFormationClient(config);
  try {
    const { Stacks: [stack] = [] } = await client.send(new DescribeStacksCommand({ StackName: name }));
    const pairs = (list: readonly (readonly [string | undefined, string | undefined])[]): Record<string, string> =>
      Object.fromEntries(list.map(([key = '', value = '']) => [key, value]));
    return {
      arn: stack?.StackId ?? '',
      parameters: pairs((stack?.Parameters ?? []).map((one) => [one.ParameterKey, one.ParameterValue])),
      outputs: pairs((stack?.Outputs ?? []).map((one) => [one.OutputKey, one.OutputValue])),
      tags: pairs((stack?.Tags ?? []).map((one) => [one.Key, one.Value])),
    };
  } catch (error) {
    if (error instanceof Error && error.name === 'ValidationError' && /does not exist/.test(error.message))
      return undefined;
    throw error;
  } finally {
    client.destroy();
  }
}

/** Returns the lines that a deployment prints at its end. */
export function nextSteps(outputs: DeployedStack['outputs']): readonly string[] {
  const steps = [
    ['register a cluster', outputs['RegisterCommand']],
    ['status', outputs['StatusCommand']],
    ['dashboard', outputs['DashboardUrl']],
    ['admission URL', outputs['AdmissionUrl']],
  ].filter(([, value]) => value);
  return ['', 'Next:', ...steps.map(([name, value]) => `  ${name}: ${value}`)];
}

/**
 * Returns the alarm that rolls an update back, and how long CloudFormation watches it after the update. Returns
 * `undefined` if `minutes` is 0 or the stack has no alarms: CloudFormation rolls back if an alarm does not exist.
 */
export function rollbackConfiguration(name: string, stack: DeployedStack | undefined, minutes: number) {
  const [, partition, place] = /^arn:([\w-]+):cloudformation:([\w-]+:\d+):/.exec(stack?.arn ?? '') ?? [];
  if (minutes === 0 || place === undefined || stack?.parameters['Alarms'] !== 'true') return undefined;
  const Arn = `arn:${partition}:cloudwatch:${place}:alarm:${name}-${RELEASE_FAILING}`;
  const trigger = { Arn, Type: 'AWS::CloudWatch::CompositeAlarm' };
  return { MonitoringTimeInMinutes: minutes, RollbackTriggers: [trigger] };
}
