#!/usr/bin/env bash
# @aws-sdk/client-dynamodb 3.1162.0 does not check x-amz-crc32, the checksum that DynamoDB sends with its answers. The SDK for Go 2 checks it by
# default (package service/dynamodb/internal/customizations). Here a value that changed on the way, such as in a proxy or an emulator, is
# returned as if it were stored.
# Seen on 2026-11-29 with Node.js 24 and a wrong checksum:
#   attempts: 1, value: stored
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { createServer } from 'node:http';
import { crc32 } from 'node:zlib';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';

const body = '{"Item":{"k":{"S":"key"},"v":{"S":"stored"}}}';
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/x-amz-json-1.0');
  response.setHeader('x-amz-crc32', String(crc32(body) ^ 1));
  response.end(body);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const client = new DynamoDBClient({
  endpoint: `http://127.0.0.1:${server.address().port}`,
  region: 'eu-west-1',
  credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
});
const { Item, $metadata } = await client.send(new GetItemCommand({ TableName: 'table', Key: { k: { S: 'key' } } }));
console.log(`attempts: ${$metadata.attempts}, value: ${Item.v.S}`);
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
attempts: 1, value: stored
SEEN
