#!/usr/bin/env bash
# @aws-sdk/client-dynamodb 3.1162.0 sends requests to a host of the account, 123456789012.ddb.REGION.amazonaws.com, if the credentials have an account
# id, and otherwise to dynamodb.REGION.amazonaws.com. Credentials of an assumed role or of IAM Identity Center have one, an access key alone does
# not: the same program needs other hosts in an allow list, a proxy or a firewall. accountIdEndpointMode decides (AWS SDKs and tools reference
# guide, "Account-based endpoints").
# Seen on 2026-11-29 with Node.js 24:
#   {}: dynamodb.eu-west-1.amazonaws.com
#   {"accountId":"123456789012"}: 123456789012.ddb.eu-west-1.amazonaws.com
#   {"accountId":"123456789012"}, accountIdEndpointMode disabled: dynamodb.eu-west-1.amazonaws.com
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-dynamodb@3.1162.0
cat >run.mjs <<'JS'
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';

/** Returns the host, and sends nothing. */
async function hostFor(identity, options) {
  let host = '';
  const handle = async ({ hostname }) => {
    host = hostname;
    throw new Error('not sent');
  };
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b', ...identity };
  const client = new DynamoDBClient({ region: 'eu-west-1', credentials, maxAttempts: 1, requestHandler: { handle }, ...options });
  await client.send(new GetItemCommand({ TableName: 'table', Key: { k: { S: 'key' } } })).catch(() => {});
  return host;
}
const account = { accountId: '123456789012' };
console.log(`{}: ${await hostFor({})}`);
console.log(`${JSON.stringify(account)}: ${await hostFor(account)}`);
const disabled = { accountIdEndpointMode: 'disabled' };
console.log(`${JSON.stringify(account)}, accountIdEndpointMode disabled: ${await hostFor(account, disabled)}`);
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
{}: dynamodb.eu-west-1.amazonaws.com
{"accountId":"123456789012"}: 123456789012.ddb.eu-west-1.amazonaws.com
{"accountId":"123456789012"}, accountIdEndpointMode disabled: dynamodb.eu-west-1.amazonaws.com
SEEN
