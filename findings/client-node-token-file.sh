#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 ignores the field tokenFile of a kubeconfig, so that its requests are anonymous. It reads "token-file", a name
# that kubectl does not know: the reference of kubeconfig (v1) has tokenFile, which kubectl writes and reads.
# Seen on 2026-11-28:
#   tokenFile: no credential
#   token-file: Bearer secret
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';

writeFileSync('token', 'secret');
for (const field of ['tokenFile', 'token-file']) {
  const config = new KubeConfig();
  config.loadFromString(`apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: https://10.0.0.1:6443}}
users:
- {name: u, user: {${field}: ${process.cwd()}/token}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
`);
  const options = {};
  await config.applyToHTTPSOptions(options);
  console.log(`${field}: ${options.headers.Authorization ?? 'no credential'}`);
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
tokenFile: no credential
token-file: Bearer secret
SEEN
