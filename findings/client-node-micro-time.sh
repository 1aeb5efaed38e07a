#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 returns renewTime of a Lease as a string, although its type is V1MicroTime, a Date with methods, which a caller
# has to give for a write. Code that type-checks, such as renewTime.getTime(), fails on each Lease that was read. Other times are Dates.
# Seen on 2026-11-28:
#   'renewTime'?: V1MicroTime;
#   creationTimestamp: Date
#   renewTime: String
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { createServer } from 'node:http';
import { CoordinationV1Api, KubeConfig } from '@kubernetes/client-node';

const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'a', creationTimestamp: '2026-11-28T10:00:00Z' },
  spec: { renewTime: '2026-11-28T10:00:00.123456Z' },
};
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(lease));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const config = new KubeConfig();
const cluster = { name: 'c', server: `http://127.0.0.1:${server.address().port}`, skipTLSVerify: true };
config.loadFromClusterAndUser(cluster, { name: 'u' });
const read = await config.makeApiClient(CoordinationV1Api).readNamespacedLease({ name: 'a', namespace: 'default' });
console.log(`creationTimestamp: ${read.metadata.creationTimestamp.constructor.name}`);
console.log(`renewTime: ${read.spec.renewTime.constructor.name}`);
process.exit();
JS
grep -o "'renewTime'?: .*" node_modules/@kubernetes/client-node/dist/gen/models/V1LeaseSpec.d.ts | tee seen
node run.mjs | tee -a seen
diff - seen <<'SEEN'
'renewTime'?: V1MicroTime;
creationTimestamp: Date
renewTime: String
SEEN
