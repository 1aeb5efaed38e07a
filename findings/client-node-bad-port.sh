#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 cannot reach an API server on some 80 ports, such as 6000, 6667 or 10080: it uses fetch of undici, which refuses the
# ports that a browser must not use (Fetch standard, "port blocking"). kubectl and node:https reach the same server. Control planes that are
# hosted with one port each meet this, and the message of the error is only "fetch failed".
# Seen on 2026-11-29 with Node.js 24 and OpenSSL:
#   node:https, 127.0.0.1:10080: 200
#   client-node, 127.0.0.1:10080: fetch failed (bad port)
#   client-node, 127.0.0.1:10081: listed
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
import { createServer, get } from 'node:https';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const ca = readFileSync('certificate');
const answer = '{"apiVersion":"v1","kind":"NamespaceList","metadata":{},"items":[]}';
for (const port of [10080, 10081]) {
  const server = createServer({ cert: ca, key: readFileSync('key') }, (_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(answer);
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  const at = `127.0.0.1:${port}`;
  const plain = () => new Promise((done) => get(`https://${at}`, { ca, agent: false }, done));
  if (port === 10080) console.log(`node:https, ${at}: ${(await plain()).statusCode}`);
  const config = new KubeConfig();
  const cluster = { name: 'c', server: `https://${at}`, caData: ca.toString('base64') };
  config.loadFromClusterAndUser(cluster, { name: 'u', token: 'x' });
  const result = await config.makeApiClient(CoreV1Api).listNamespace().then(
    () => 'listed',
    (error) => `${error.message} (${error.cause.message})`,
  );
  console.log(`client-node, ${at}: ${result}`);
}
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
node:https, 127.0.0.1:10080: 200
client-node, 127.0.0.1:10080: fetch failed (bad port)
client-node, 127.0.0.1:10081: listed
SEEN
