#!/usr/bin/env bash
# dynalite 4.0.0 removes the elements of a list one after the other, so that the second index means another element than in the stored item.
# "REMOVE l[1], l[2]" removes two neighbours in DynamoDB (the example of the developer guide, "Removing elements from a list").
# Seen on 2026-11-28 with @aws-sdk/client-dynamodb 3.1162.0, where DynamoDB leaves "a d e":
#   a c e
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { CreateTableCommand, DynamoDBClient, PutItemCommand, UpdateItemCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
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
const k = { S: 'a' };
await client.send(new PutItemCommand({ TableName, Item: { k, l: { L: [...'abcde'].map((S) => ({ S })) } } }));
const remove = { TableName, Key: { k }, UpdateExpression: 'REMOVE l[1], l[2]', ReturnValues: 'ALL_NEW' };
const { Attributes } = await client.send(new UpdateItemCommand(remove));
console.log(Attributes.l.L.map(({ S }) => S).join(' '));
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
a c e
SEEN
