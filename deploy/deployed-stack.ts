import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  DescribeTableCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';
import { RELEASE_FAILING } from './alarm-list.ts';
import type { StackParameters } from './parameters.ts';

export interface StackProvider {
  readonly getAwsSdkV3Config: () => Promise<DynamoDBClientConfig>;
  readonly getStackResources: () => Promise<readonly StackResource[]>;
}

interface StackResource {
  readonly LogicalResourceId?: string;
  readonly PhysicalResourceId?: string;
  readonly ResourceStatus?: string;
}

export interface DeployedStack {
  readonly arn: string;
  readonly parameters: StackParameters;
  readonly outputs: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

/** Returns `undefined` if the stack does not exist. */
export async function describeStack(name: string, provider: StackProvider): Promise<DeployedStack | undefined> {
  const { region, endpoint, credentials } = await provider.getAwsSdkV3Config();
  const client = new CloudFormationClient({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
  });
  try {
    const { Stacks: [stack] = [] } = await client.send(new DescribeStacksCommand({ StackName: name }));
    const pairs = (list: readonly (readonly [string | undefined, string | undefined])[]) =>
      Object.fromEntries(list.map(([key = '', value = '']) => [key, value]));
    return {
      arn: stack?.StackId ?? '',
      parameters: pairs((stack?.Parameters ?? []).map((one) => [one.ParameterKey, one.ParameterValue])),
      outputs: pairs((stack?.Outputs ?? []).map((one) => [one.OutputKey, one.OutputValue])),
      tags: pairs((stack?.Tags ?? []).map((one) => [one.Key, one.Value])),
    };
  } catch (error) {
    if (isMissingStack(error)) return undefined;
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
 * Returns the alarm that rolls an update back, and how long CloudFormation watches it after the update. `undefined` for no
 * minutes, and for a stack without alarms: CloudFormation rolls back when an alarm does not exist.
 */
export function rollbackConfiguration(name: string, stack: DeployedStack | undefined, minutes: number) {
  const [, partition, place] = /^arn:([\w-]+):cloudformation:([\w-]+:\d+):/.exec(stack?.arn ?? '') ?? [];
  if (minutes === 0 || place === undefined || stack?.parameters['Alarms'] !== 'true') return undefined;
  return {
    MonitoringTimeInMinutes: minutes,
    RollbackTriggers: [
      {
        Arn: `arn:${partition}:cloudwatch:${place}:alarm:${name}-${RELEASE_FAILING}`,
        Type: 'AWS::CloudWatch::CompositeAlarm',
      },
    ],
  };
}

const KEYS = 'cluster HASH, key RANGE';

/**
 * Whether a table of that name exists that is not the stack's. The table outlives its stack, so that a deployment after
 * `serverless remove`, or after one that failed half-way, finds it.
 *
 * @throws Error when the table has other keys: it is not one of this project.
 */
export async function isLeftBehind(name: string, provider: StackProvider): Promise<boolean> {
  const table = await describeTable(name, await provider.getAwsSdkV3Config());
  if (table === undefined || (await isOfStack(name, provider))) return false;
  const keys = table.KeySchema?.map(({ AttributeName, KeyType }) => `${AttributeName} ${KeyType}`).join(', ');
  if (keys === KEYS) return true;
  throw new Error(
    `The table ${name} exists, and its keys are ${keys}, not ${KEYS}: it is not a table of this project. ` +
      'Deploy another stage, or name a table of this project with --param table=<name>.',
  );
}

async function describeTable(name: string, config: DynamoDBClientConfig): Promise<TableDescription | undefined> {
  const client = new DynamoDBClient(config);
  try {
    return (await client.send(new DescribeTableCommand({ TableName: name }))).Table;
  } catch (error) {
    if (error instanceof Error && error.name === 'ResourceNotFoundException') return undefined;
    throw error;
  } finally {
    client.destroy();
  }
}

async function isOfStack(name: string, provider: StackProvider): Promise<boolean> {
  const resources = await provider.getStackResources().catch((error: unknown) => {
    if (isMissingStack(error)) return [];
    throw error;
  });
  return resources.some(
    ({ LogicalResourceId, PhysicalResourceId, ResourceStatus }) =>
      LogicalResourceId === 'Table' && PhysicalResourceId === name && ResourceStatus?.startsWith('DELETE') !== true,
  );
}

function isMissingStack(error: unknown): boolean {
  return error instanceof Error && error.name === 'ValidationError' && /does not exist/.test(error.message);
}
