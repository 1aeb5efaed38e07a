#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 drops the body of an answer with status 401: the error of a typed call has the body undefined and only the message
# "Unauthorized". With any other error status, the body is a text with the Status object. Proxies and aggregated API servers write there why they refuse
# a credential, and the error of client-go 0.36.3 has that message.
# Seen on 2026-11-29 with Node.js 24 and OpenSSL:
#   401: Unauthorized, body undefined
#   403: Unknown API Status Code!, body with "the token is of another cluster"
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
cat >run.mjs <<'JS'
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const message = 'the token is of another cluster';
const cert = readFileSync('cert.pem');
let code;
const server = createServer({ cert, key: readFileSync('key.pem') }, (_, response) => {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code, message }));
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const config = new KubeConfig();
config.loadFromClusterAndUser(
  { name: 'c', server: `https://127.0.0.1:${server.address().port}`, caData: cert.toString('base64') },
  { name: 'u', token: 'secret' },
);
for (code of [401, 403]) {
  const error = await config.makeApiClient(CoreV1Api).listNode().catch((thrown) => thrown);
  const body = error.body?.includes(message) ? `with "${message}"` : error.body;
  console.log(`${error.code}: ${error.message.match(/^Message: (.*)$/m)[1]}, body ${body}`);
}
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
401: Unauthorized, body undefined
403: Unknown API Status Code!, body with "the token is of another cluster"
SEEN
