#!/usr/bin/env bash
# node:https of Node.js 24.21.0 takes the name of the server for TLS (SNI and the check of the certificate) from the header Host. The documentation of
# https.Agent has "the host name of the target server" as the default of servername, and fetch in the same process, curl and Go use the URL. A
# request by address with the name of a virtual host, as for an ingress, then fails with node:https. The option servername decides for both.
# Seen on 2026-11-29 with OpenSSL, a certificate for localhost and the header "Host: api.example.com":
#   node:https: ERR_TLS_CERT_ALTNAME_INVALID, SNI api.example.com
#   node:https, servername: 200, SNI localhost
#   fetch: 200, SNI localhost
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
cat >run.mjs <<'JS'
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';

const cert = readFileSync('cert.pem');
let sni;
const SNICallback = (name, done) => {
  sni = name;
  done(null);
};
const server = https.createServer({ cert, key: readFileSync('key.pem'), SNICallback }, (_, response) => response.end());
await once(server.listen(0, 'localhost'), 'listening');
const url = `https://localhost:${server.address().port}`;
const headers = { host: 'api.example.com' };
const get = (options) =>
  new Promise((resolve, reject) => {
    https.get(url, { ca: cert, agent: false, headers, ...options }, (response) => resolve(response.resume().statusCode)).on('error', reject);
  });
for (const [title, call] of [
  ['node:https', () => get()],
  ['node:https, servername', () => get({ servername: 'localhost' })],
  ['fetch', async () => (await fetch(url, { headers })).status],
]) {
  const result = await call().catch((error) => error.code ?? error.cause.code);
  console.log(`${title}: ${result}, SNI ${sni}`);
}
process.exit();
JS
NODE_EXTRA_CA_CERTS=cert.pem node run.mjs | tee seen
diff - seen <<'SEEN'
node:https: ERR_TLS_CERT_ALTNAME_INVALID, SNI api.example.com
node:https, servername: 200, SNI localhost
fetch: 200, SNI localhost
SEEN
