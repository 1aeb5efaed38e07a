#!/usr/bin/env bash
# The error of a refused connection has an empty message in Node.js 24.21.0 if the name has several addresses: it is an AggregateError, whose
# texts are only in its errors. A log of error.message alone is empty for a server that is down, and has the reason if it has one address.
# Seen on 2026-11-28:
#   1: Error ECONNREFUSED "connect ECONNREFUSED 127.0.0.1:PORT"
#   2: AggregateError ECONNREFUSED ""
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.mjs <<'JS'
import { once } from 'node:events';
import { request } from 'node:https';
import { createServer } from 'node:net';

const server = createServer().listen(0, '0.0.0.0');
await once(server, 'listening');
const { port } = server.address();
server.close();
await once(server, 'close');
for (const addresses of [['127.0.0.1'], ['127.0.0.1', '127.0.0.2']]) {
  const lookup = (_name, _options, done) => done(null, addresses.map((address) => ({ address, family: 4 })));
  const [error] = await once(request({ host: 'api.example.com', port, lookup }).on('error', () => {}), 'error');
  console.log(`${addresses.length}: ${error.name} ${error.code} "${error.message.replace(port, 'PORT')}"`);
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
1: Error ECONNREFUSED "connect ECONNREFUSED 127.0.0.1:PORT"
2: AggregateError ECONNREFUSED ""
SEEN
