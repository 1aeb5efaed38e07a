#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 merges the files of KUBECONFIG by other rules than kubectl: the last current-context counts, and two clusters of
# one name are an error. The Kubernetes documentation ("Organizing Cluster Access Using kubeconfig Files") gives both to the first file, as
# kubectl 1.36.3 does. A program thus reads or writes another cluster than kubectl with the same variable.
# Seen on 2026-11-28:
#   first:second: https://10.0.0.2:6443
#   first:third: Duplicate cluster: one
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';

const file = (cluster, context, server) => `apiVersion: v1
kind: Config
clusters:
- {name: ${cluster}, cluster: {server: "${server}"}}
users:
- {name: ${context}, user: {token: x}}
contexts:
- {name: ${context}, context: {cluster: ${cluster}, user: ${context}}}
current-context: ${context}
`;
writeFileSync('first', file('one', 'one', 'https://10.0.0.1:6443'));
writeFileSync('second', file('two', 'two', 'https://10.0.0.2:6443'));
writeFileSync('third', file('one', 'three', 'https://10.0.0.3:6443'));
for (const files of ['first:second', 'first:third']) {
  process.env.KUBECONFIG = files;
  const config = new KubeConfig();
  try {
    config.loadFromDefault();
    console.log(`${files}: ${config.getCurrentCluster().server}`);
  } catch (error) {
    console.log(`${files}: ${error.message}`);
  }
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
first:second: https://10.0.0.2:6443
first:third: Duplicate cluster: one
SEEN
