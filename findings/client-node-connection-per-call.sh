#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 opens a TLS connection for each call if the kubeconfig has a certificate authority or a client certificate, and
# leaves it open: it makes a new pool of undici per call. client-go keeps one connection. A loop of calls thus costs a handshake each, and its
# sockets stay until the server closes them.
# Seen on 2026-11-28 with Node.js 24 and OpenSSL:
#   20 calls: 20 handshakes, 20 connections are open
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
const server = createServer({ cert, key: readFileSync('key'), keepAliveTimeout: 60_000 }, (_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end('{"apiVersion":"v1","kind":"NamespaceList","metadata":{},"items":[]}');
});
let handshakes = 0;
server.on('secureConnection', () => handshakes++);
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const config = new KubeConfig();
const cluster = { name: 'c', server: `https://127.0.0.1:${server.address().port}`, caData: cert.toString('base64') };
config.loadFromClusterAndUser(cluster, { name: 'u', token: 'x' });
const api = config.makeApiClient(CoreV1Api);
for (let call = 0; call < 20; call++) await api.listNamespace();
const open = await new Promise((done) => server.getConnections((_error, count) => done(count)));
console.log(`20 calls: ${handshakes} handshakes, ${open} connections are open`);
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
20 calls: 20 handshakes, 20 connections are open
SEEN
