import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { describe } from '@jest/globals';
import { keyOf } from '../../lib/table/dynamodb/dynamodb-items.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { createTable } from '../../local/table-client.ts';
import { startTableServer } from '../../local/table-server.ts';
import { describeKeyValueTable, NOW_MS, type TableOddity } from '../contract/key-value-table.ts';
import { running } from '../support/running.ts';
import { freePort, startServer } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

const TABLE = 'kube-bootstrap-controller';

interface Engine {
  readonly name: string;
  readonly oddities?: readonly TableOddity[];
  readonly start: () => Promise<{ readonly endpoint: string; readonly close: () => Promise<unknown> }>;
}

const ENGINES: readonly Engine[] = [
  {
    name: 'dynalite',
    oddities: ['counts the characters of a text, not its bytes'],
    start: () => startTableServer({ key: 'test' }),
  },
  {
    name: 'moto',
    oddities: ['refuses items from 405,000 bytes'],
    start: () => startEngine('moto_server', (port) => ({ args: ['-p', port] })),
  },
  {
    name: 'ministack',
    start: () => startEngine('ministack', (port) => ({ variables: { BIND_HOST: '127.0.0.1', GATEWAY_PORT: port } })),
  },
  { name: 'dynoxide', start: () => startEngine('dynoxide', (port) => ({ args: ['--port', port] })) },
];

interface Settings {
  readonly args?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

/** Starts a program that `install.sh tables` has installed. */
async function startEngine(program: string, settings: (port: string) => Settings) {
  const install = join(import.meta.dirname, '../deploy/install.sh');
  const folder = execFileSync('bash', [install, 'tables', '--folder'], { encoding: 'utf8' }).trim();
  const port = String(await freePort('127.0.0.1'));
  const endpoint = `http://127.0.0.1:${port}`;
  const { args = [], variables = {} } = settings(port);
  const set = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const answers = async () => (await fetch(endpoint)).status > 0;
  const words = [...set, join(folder, 'bin', program), ...args];
  const server = await startServer('/usr/bin/env', words, temporaryFolder(), answers);
  return { endpoint, close: () => server.kill() };
}

describe.each(ENGINES)('the table of $name', ({ oddities = [], start }) => {
  const engine = running(async () => {
    const { endpoint, close } = await start();
    const client = testDynamoClient(endpoint, { region: 'eu-west-1' }); // moto refuses a region that does not exist
    await createTable(client, TABLE);
    const closeBoth = async () => {
      client.destroy();
      await close();
    };
    return { client, close: closeBoth };
  });

  describeKeyValueTable('as a key-value table', {
    open: (deadline = new AbortController().signal) =>
      dynamoDbTable({
        client: engine.client,
        tableName: TABLE,
        deadline,
        nowMs: () => NOW_MS,
        newWriteId: randomUUID,
      }),
    remove: (cluster, key) =>
      engine.client.send(new DeleteItemCommand({ TableName: TABLE, Key: keyOf({ cluster, key }) })),
    oddities,
  });
});
