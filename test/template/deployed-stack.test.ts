import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isLeftBehind, rollbackConfiguration, type StackProvider } from '../../deploy/deployed-stack.ts';
import { createTable } from '../../local/create-table.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { resolveTemplate } from '../support/resolve-template.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

const NAME = 'kube-bootstrap-controller-dev';
const OTHER = 'of-another-project';

describe('a table that exists before the stack', () => {
  let server: TableServer;
  let client: DynamoDBClient;

  beforeAll(async () => {
    server = await startTableServer({ key: 'test' });
    client = testDynamoClient(server.endpoint);
    await createTable(client, NAME, { pollMs: 1 });
    const id = { AttributeName: 'id' };
    await client.send(
      new CreateTableCommand({
        TableName: OTHER,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ ...id, AttributeType: 'S' }],
        KeySchema: [{ ...id, KeyType: 'HASH' }],
      }),
    );
  });

  afterAll(async () => {
    client.destroy();
    await server.close();
  });

  function aProvider(getStackResources: StackProvider['getStackResources']): StackProvider {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    return {
      getAwsSdkV3Config: async () => ({ region: 'eu-test-1', endpoint: server.endpoint, credentials }),
      getStackResources,
    };
  }

  const held = (ResourceStatus: string) => async () => [
    { LogicalResourceId: 'Table', PhysicalResourceId: NAME, ResourceStatus },
  ];
  const noStack = () =>
    Promise.reject(Object.assign(new Error('Stack with id x does not exist'), { name: 'ValidationError' }));

  test.each([
    ['the stack was removed', noStack],
    ['the stack has another table, or none yet', async () => []],
    ['the stack let go of it', held('DELETE_SKIPPED')],
  ])('a table that exists before the stack is used when %s', async (_when, resources) => {
    expect(await isLeftBehind(NAME, aProvider(resources))).toBe(true);
  });

  test('a table is left to the stack that holds it', async () => {
    expect(await isLeftBehind(NAME, aProvider(held('UPDATE_COMPLETE')))).toBe(false);
  });

  test('a table that does not exist is created by the stack', async () => {
    expect(await isLeftBehind('nothing-of-the-name', aProvider(noStack))).toBe(false);
  });

  test('a table with other keys is refused', async () => {
    await expect(isLeftBehind(OTHER, aProvider(noStack))).rejects.toThrow('its keys are id HASH');
  });

  test('a stack that cannot be read fails the deployment', async () => {
    const denied = () => Promise.reject(Object.assign(new Error('not authorized'), { name: 'AccessDenied' }));
    await expect(isLeftBehind(NAME, aProvider(denied))).rejects.toThrow('not authorized');
  });
});

const stack = (Alarms: string) => ({
  arn: 'arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/a-stack/1',
  parameters: { Alarms },
  outputs: {},
  tags: {},
});

test('an update is rolled back by alarms of the stack that exist', () => {
  const configuration = rollbackConfiguration('a-stack', stack('true'), 10);
  expect(configuration?.MonitoringTimeInMinutes).toBe(10);
  const names = resourcesOfAlarms().map(
    ({ AlarmName }) => `arn:aws-cn:cloudwatch:cn-north-1:123456789012:alarm:${AlarmName}`,
  );
  for (const { Arn } of configuration?.RollbackTriggers ?? []) expect(names).toContain(Arn);
  expect(configuration?.RollbackTriggers[0]?.Type).toBe('AWS::CloudWatch::CompositeAlarm');
});

test.each([
  ['no minutes are set', stack('true'), 0],
  ['the stack has no alarms', stack('false'), 10],
  ['there is no stack yet', undefined, 10],
])('an update is not watched when %s', (_, deployed, minutes) => {
  expect(rollbackConfiguration('a-stack', deployed, minutes)).toBeUndefined();
});

function resourcesOfAlarms(): { readonly AlarmName: string }[] {
  const { Resources } = resolveTemplate(uncompiledTemplate(), {}, 'a-stack');
  return Object.values(Resources).flatMap(({ Type, Properties }) => (/Alarm$/.test(Type) ? [Properties] : []));
}
