#!/usr/bin/env bash
# dynalite 4.0.0 returns at most about 1 MB of items for one BatchGetItem, and the other keys as UnprocessedKeys. DynamoDB returns up to 16 MB (API
# reference of BatchGetItem: of 100 items with 300 KB each, it returns 52). A program that asks again for the keys that are left makes many times
# as many calls here.
# Seen on 2026-11-29 with @aws-sdk/client-dynamodb 3.1162.0, where DynamoDB returns all items:
#   items of 300 KB: 10, returned: 4, unprocessed: 6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { BatchGetItemCommand, CreateTableCommand, DynamoDBClient, PutItemCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
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
  }),
);
await waitUntilTableExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 10 }, { TableName });
const keys = Array.from({ length: 10 }, (_, at) => ({ k: { S: String(at) } }));
for (const key of keys) await client.send(new PutItemCommand({ TableName, Item: { ...key, v: { S: 'x'.repeat(300_000) } } }));
const reply = await client.send(new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys: keys } } }));
const unprocessed = reply.UnprocessedKeys[TableName].Keys;
console.log(`items of 300 KB: ${keys.length}, returned: ${reply.Responses[TableName].length}, unprocessed: ${unprocessed.length}`);
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
items of 300 KB: 10, returned: 4, unprocessed: 6
SEEN
