#!/usr/bin/env bash
# dynalite 4.0.0 compares lists and maps by the text of their members: a list with the number 1 does not equal one with 1.0, and a set in a map
# equals only a set in the same order. DynamoDB compares numbers by value and sets without order at any depth, so that a conditional write
# succeeds there and fails here. At the top level of an item, dynalite compares as DynamoDB does.
# Seen on 2026-11-28 with @aws-sdk/client-dynamodb 3.1162.0:
#   number: equal
#   number in a list: ConditionalCheckFailedException
#   set: equal
#   set in a map: ConditionalCheckFailedException
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { CreateTableCommand, DynamoDBClient, PutItemCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
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
const number = (N) => ({ N });
const set = (...SS) => ({ SS });
const cases = {
  'number': [number('1'), number('1.0')],
  'number in a list': [{ L: [number('1')] }, { L: [number('1.0')] }],
  'set': [set('x', 'y'), set('y', 'x')],
  'set in a map': [{ M: { s: set('x', 'y') } }, { M: { s: set('y', 'x') } }],
};
for (const [name, [stored, other]] of Object.entries(cases)) {
  const Item = { k: { S: name }, v: stored };
  await client.send(new PutItemCommand({ TableName, Item }));
  const again = { TableName, Item, ConditionExpression: 'v = :v', ExpressionAttributeValues: { ':v': other } };
  const outcome = await client.send(new PutItemCommand(again)).then(() => 'equal', (error) => error.name);
  console.log(`${name}: ${outcome}`);
}
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
number: equal
number in a list: ConditionalCheckFailedException
set: equal
set in a map: ConditionalCheckFailedException
SEEN
