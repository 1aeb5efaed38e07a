#!/usr/bin/env bash
# An informer of @kubernetes/client-node 2.0.1 keeps objects of two shapes: creationTimestamp is a Date (as in the type) in those that it listed, and
# a string in those that its watch added or changed later, because events are not converted. Code such as creationTimestamp.getTime() works at
# the start and fails after the first event.
# Seen on 2026-11-28:
#   listed: Date
#   watched: String
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { createServer } from 'node:http';
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';

const service = (name) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default', resourceVersion: '1', creationTimestamp: '2026-11-28T10:00:00Z' },
});
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.url.includes('watch=true')) response.write(`${JSON.stringify({ type: 'ADDED', object: service('watched') })}\n`);
  else response.end(JSON.stringify({ apiVersion: 'v1', kind: 'ServiceList', metadata: { resourceVersion: '1' }, items: [service('listed')] }));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const config = new KubeConfig();
const cluster = { name: 'c', server: `http://127.0.0.1:${server.address().port}`, skipTLSVerify: true };
config.loadFromClusterAndUser(cluster, { name: 'u' });
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/services', () => api.listServiceForAllNamespaces());
informer.on('add', ({ metadata }) => {
  console.log(`${metadata.name}: ${metadata.creationTimestamp.constructor.name}`);
  if (metadata.name === 'watched') process.exit();
});
await informer.start();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
listed: Date
watched: String
SEEN
