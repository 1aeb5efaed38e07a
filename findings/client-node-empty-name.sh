#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 sends a call with an empty name to the whole collection: a delete of one Service becomes a delete of all Services of
# the namespace ("delete a collection" in the Kubernetes API), and a read returns the list as if it were a Service. A required parameter is only
# refused if it is null or undefined. client-go refuses an empty name before it sends anything ("resource name may not be empty").
# Seen on 2026-11-29 with Node.js 24 and OpenSSL:
#   name "a": DELETE /api/v1/namespaces/x/services/a
#   name "": DELETE /api/v1/namespaces/x/services
#   name "": GET /api/v1/namespaces/x/services
#   no name: Required parameter name was null or undefined when calling CoreV1Api.readNamespacedService.
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
let sent = '';
const server = createServer({ cert, key: readFileSync('key') }, (request, response) => {
  sent = `${request.method} ${request.url}`;
  response.setHeader('content-type', 'application/json');
  response.end('{"apiVersion":"v1","kind":"Service","metadata":{}}');
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const config = new KubeConfig();
const cluster = { name: 'c', server: `https://127.0.0.1:${server.address().port}`, caData: cert.toString('base64') };
config.loadFromClusterAndUser(cluster, { name: 'u', token: 'x' });
const api = config.makeApiClient(CoreV1Api);
const namespace = 'x';
await api.deleteNamespacedService({ name: 'a', namespace });
console.log(`name "a": ${sent}`);
await api.deleteNamespacedService({ name: '', namespace });
console.log(`name "": ${sent}`);
await api.readNamespacedService({ name: '', namespace });
console.log(`name "": ${sent}`);
await api.readNamespacedService({ namespace }).catch((error) => console.log(`no name: ${error.message}`));
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
name "a": DELETE /api/v1/namespaces/x/services/a
name "": DELETE /api/v1/namespaces/x/services
name "": GET /api/v1/namespaces/x/services
no name: Required parameter name was null or undefined when calling CoreV1Api.readNamespacedService.
SEEN
