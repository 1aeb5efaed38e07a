#!/usr/bin/env bash
# requestTimeout of @smithy/node-http-handler 4.14.2, the HTTP client of the AWS SDK, does not end a request: it prints a warning, and the call waits
# as long as the server does. throwOnRequestTimeout: true makes it an error, TimeoutError.
# Seen on 2026-11-29 with Node.js 24 and @aws-sdk/client-dynamodb 3.1162.0, a requestTimeout of 100 ms and an answer after 1,000 ms:
#   {"requestTimeout":100}: answered, requests: 1
#   {"requestTimeout":100,"throwOnRequestTimeout":true}: TimeoutError, requests: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-dynamodb@3.1162.0 @smithy/node-http-handler@4.14.2
cat >run.mjs <<'JS'
import { createServer } from 'node:http';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { NodeHttpHandler } from '@smithy/node-http-handler';

let requests = 0;
const server = createServer((_request, response) => {
  requests += 1;
  setTimeout(() => response.end('{"TableNames":[]}'), 1_000);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
for (const options of [{ requestTimeout: 100 }, { requestTimeout: 100, throwOnRequestTimeout: true }]) {
  requests = 0;
  const client = new DynamoDBClient({
    endpoint: `http://127.0.0.1:${server.address().port}`,
    region: 'eu-west-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler(options),
  });
  const result = await client.send(new ListTablesCommand({})).then(() => 'answered', (error) => error.name);
  console.log(`${JSON.stringify(options)}: ${result}, requests: ${requests}`);
}
process.exit();
JS
node run.mjs 2>warning | tee seen
diff - seen <<'SEEN'
{"requestTimeout":100}: answered, requests: 1
{"requestTimeout":100,"throwOnRequestTimeout":true}: TimeoutError, requests: 1
SEEN
