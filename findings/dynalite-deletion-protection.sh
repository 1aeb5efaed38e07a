#!/usr/bin/env bash
# dynalite 4.0.0 accepts DeletionProtectionEnabled, and then deletes the table. DynamoDB refuses to delete such a table (API reference of
# CreateTable), so that a test of this protection passes only there.
# Seen on 2026-11-28 with @aws-sdk/client-dynamodb 3.1162.0:
#   protected: undefined
#   DELETING
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { CreateTableCommand, DeleteTableCommand, DescribeTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';

const server = dynalite({ createTableMs: 0, deleteTableMs: 0 });
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const client = new DynamoDBClient({
  endpoint: `http://127.0.0.1:${server.address().port}`,
  region: 'eu-west-1',
  credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
});
const TableName = 'table';
await client.send(
  new CreateTableCommand({
    TableName,
    KeySchema: [{ AttributeName: 'k', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'k', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
    DeletionProtectionEnabled: true,
  }),
);
await waitUntilTableExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 10 }, { TableName });
const { Table } = await client.send(new DescribeTableCommand({ TableName }));
console.log(`protected: ${Table.DeletionProtectionEnabled}`);
const deletion = client.send(new DeleteTableCommand({ TableName }));
console.log(await deletion.then(({ TableDescription }) => TableDescription.TableStatus, (error) => error.name));
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
protected: undefined
DELETING
SEEN
