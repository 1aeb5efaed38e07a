#!/usr/bin/env bash
# dynalite 4.0.0 counts the characters of a text in the size of an item, and stores an item whose text has 409,600 bytes of UTF-8. DynamoDB
# counts bytes, with the names of the attributes, and refuses more than 400 KB (developer guide, "Item sizes and formats").
# Seen on 2026-11-28 with @aws-sdk/client-dynamodb 3.1162.0:
#   409600 bytes of one-byte characters: ValidationException
#   409600 bytes of two-byte characters: stored
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
const texts = { 'one-byte': 'a'.repeat(409_600), 'two-byte': 'é'.repeat(204_800) };
for (const [name, S] of Object.entries(texts)) {
  const put = new PutItemCommand({ TableName, Item: { k: { S: name }, v: { S } } });
  const outcome = await client.send(put).then(() => 'stored', (error) => error.name);
  console.log(`${Buffer.byteLength(S)} bytes of ${name} characters: ${outcome}`);
}
client.destroy();
server.close();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
409600 bytes of one-byte characters: ValidationException
409600 bytes of two-byte characters: stored
SEEN
