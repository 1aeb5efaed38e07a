import {
  DescribeTableCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';

/** What is used of osls's provider "aws". */
export interface StackProvider {
  readonly getAwsSdkV3Config: () => Promise<DynamoDBClientConfig>;
  readonly getStackResources: () => Promise<readonly StackResource[]>;
}

interface StackResource {
  readonly LogicalResourceId?: string;
  readonly PhysicalResourceId?: string;
  readonly ResourceStatus?: string;
}

const KEYS = 'cluster HASH, key RANGE';

/**
 * Whether there is a table of that name which is not the stack's. The table outlives its stack, so that a deployment
 * after `serverless remove`, or after one that failed half-way, finds it.
 *
 * @throws Error when the table is keyed in another way: it is somebody else's.
 */
export async function isLeftBehind(name: string, provider: StackProvider): Promise<boolean> {
  const table = await describe(name, await provider.getAwsSdkV3Config());
  if (table === undefined || (await isOfStack(name, provider))) return false;
  const keys = table.KeySchema?.map(({ AttributeName, KeyType }) => `${AttributeName} ${KeyType}`).join(', ');
  if (keys === KEYS) return true;
  throw new Error(
    `There is a table ${name} already and its keys are ${keys}, not ${KEYS}: it is somebody else's. ` +
      'Deploy another stage, or name a table of this project with --param table=<name>.',
  );
}

async function describe(name: string, config: DynamoDBClientConfig): Promise<TableDescription | undefined> {
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
    const noStack = error instanceof Error && error.name === 'ValidationError' && /does not exist/.test(error.message);
    if (noStack) return [];
    throw error;
  });
  return resources.some(
    ({ LogicalResourceId, PhysicalResourceId, ResourceStatus }) =>
      LogicalResourceId === 'Table' && PhysicalResourceId === name && ResourceStatus?.startsWith('DELETE') !== true,
  );
}
