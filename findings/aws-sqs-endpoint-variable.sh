#!/usr/bin/env bash
# @aws-sdk/client-sqs 3.1169.0 ignores AWS_ENDPOINT_URL for messages: it sends them to the host of the queue's URL, with a warning on the console.
# The AWS SDKs guide ("Service-specific endpoints") gives the variable to all requests, and the same address as option endpoint works. A test with an
# emulator whose queues have URLs of Amazon thus sends to Amazon. useQueueUrlAsEndpoint: false makes the variable count.
# Seen on 2026-11-29 with Node.js 24:
#   AWS_ENDPOINT_URL: SendMessage to sqs.eu-west-1.amazonaws.com, ListQueues to 127.0.0.1
#   option endpoint: SendMessage to 127.0.0.1, ListQueues to 127.0.0.1
#   AWS_ENDPOINT_URL and {"useQueueUrlAsEndpoint":false}: SendMessage to 127.0.0.1, ListQueues to 127.0.0.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-sqs@3.1169.0
cat >run.mjs <<'JS'
import { ListQueuesCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';

const endpoint = 'http://127.0.0.1:4566';
const QueueUrl = 'https://sqs.eu-west-1.amazonaws.com/123456789012/queue';
/** Prints the hosts, and sends nothing. */
async function printHosts(name, options) {
  const hosts = [];
  const handle = async ({ hostname }) => {
    hosts.push(hostname);
    throw new Error('not sent');
  };
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new SQSClient({ region: 'eu-west-1', credentials, maxAttempts: 1, requestHandler: { handle }, ...options });
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'x' })).catch(() => {});
  await client.send(new ListQueuesCommand({})).catch(() => {});
  console.log(`${name}: SendMessage to ${hosts[0]}, ListQueues to ${hosts[1]}`);
}
process.env.AWS_ENDPOINT_URL = endpoint;
await printHosts('AWS_ENDPOINT_URL', {});
delete process.env.AWS_ENDPOINT_URL;
await printHosts('option endpoint', { endpoint });
process.env.AWS_ENDPOINT_URL = endpoint;
const fixed = { useQueueUrlAsEndpoint: false };
await printHosts(`AWS_ENDPOINT_URL and ${JSON.stringify(fixed)}`, fixed);
JS
node run.mjs 2>warning | tee seen
diff - seen <<'SEEN'
AWS_ENDPOINT_URL: SendMessage to sqs.eu-west-1.amazonaws.com, ListQueues to 127.0.0.1
option endpoint: SendMessage to 127.0.0.1, ListQueues to 127.0.0.1
AWS_ENDPOINT_URL and {"useQueueUrlAsEndpoint":false}: SendMessage to 127.0.0.1, ListQueues to 127.0.0.1
SEEN
