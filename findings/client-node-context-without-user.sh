#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 ignores the certificate authority of a cluster if the context names no user. The field is optional: client-go
# verifies the server and sends no credential, for example for /readyz. This client can then reach no server with an authority of its own.
# Seen on 2026-11-28 with Node.js 24 and OpenSSL:
#   {cluster: c, user: u}: listed
#   {cluster: c}: DEPTH_ZERO_SELF_SIGNED_CERT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out certificate -days 30 -subj /CN=server \
  -addext subjectAltName=IP:127.0.0.1 2>/dev/null
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const cert = readFileSync('certificate');
const server = createServer({ cert, key: readFileSync('key') }, (_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end('{"apiVersion":"v1","kind":"NamespaceList","metadata":{},"items":[]}');
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
for (const context of ['{cluster: c, user: u}', '{cluster: c}']) {
  const config = new KubeConfig();
  config.loadFromString(`apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:${server.address().port}", certificate-authority-data: ${cert.toString('base64')}}
users:
- {name: u, user: {}}
contexts:
- {name: x, context: ${context}}
current-context: x
`);
  const list = config.makeApiClient(CoreV1Api).listNamespace();
  console.log(`${context}: ${await list.then(() => 'listed', (error) => error.cause.code)}`);
}
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
{cluster: c, user: u}: listed
{cluster: c}: DEPTH_ZERO_SELF_SIGNED_CERT
SEEN
