#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 takes the file of a certificate or a key if a kubeconfig has both a file and data. In the reference of kubeconfig (v1),
# data overrides the file, for the certificate authority, the client certificate and its key: kubectl never reads the file. After a rotation that
# writes only the data, this client has the old certificate, and without the file it cannot start.
# Seen on 2026-11-29 with Node.js 24, where kubectl uses the data each time:
#   with the file: file file file
#   without the file: ENOENT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { rmSync, writeFileSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';

const file = `${process.cwd()}/pem`;
const both = (name) => `${name}: ${file}, ${name}-data: ${Buffer.from('data').toString('base64')}`;
writeFileSync('pem', 'file');
for (const title of ['with the file', 'without the file']) {
  const config = new KubeConfig();
  config.loadFromString(`apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443", ${both('certificate-authority')}}}
users:
- {name: u, user: {${both('client-certificate')}, ${both('client-key')}}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
`);
  const options = {};
  const result = await config.applyToHTTPSOptions(options).then(
    () => `${options.ca} ${options.cert} ${options.key}`,
    (error) => error.code,
  );
  console.log(`${title}: ${result}`);
  rmSync('pem', { force: true });
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
with the file: file file file
without the file: ENOENT
SEEN
