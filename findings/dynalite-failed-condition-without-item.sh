#!/usr/bin/env bash
# dynalite 4.0.0 accepts ReturnValuesOnConditionCheckFailure=ALL_OLD, and returns no item with a failed condition. DynamoDB returns the item
# that the condition refused (API reference of PutItem), so that a lost conditional write needs no second read.
# Seen on 2026-11-28 with @aws-sdk/client-dynamodb 3.1162.0:
#   ConditionalCheckFailedException, item: undefined
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { CreateTableCommand, DynamoDBClient, PutItemCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';

const server = dynalite({ createTableMs: 0 });
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
const put = (v) =>
  new PutItemCommand({
    TableName,
    Item: { k: { S: 'a' }, v: { S: v } },
    ConditionExpression: 'attribute_not_exists(k)',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
await client.send(put('first'));
try {
  await client.send(put('second'));
  console.log('written');
} catch (error) {
  console.log(`${error.name}, item: ${JSON.stringify(error.Item)}`);
}
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
ConditionalCheckFailedException, item: undefined
SEEN
