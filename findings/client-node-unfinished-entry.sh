#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 refuses a whole kubeconfig if one entry that nothing uses is unfinished, such as a context with a namespace only.
# "kubectl config set-context other --namespace=x" writes such an entry, and kubectl goes on reading the file: only the context in use has
# to be complete. One command for another tool thus stops each program with this client.
# Seen on 2026-11-28:
#   https://10.0.0.1:6443
#   contexts[1].context.cluster is missing
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { KubeConfig } from '@kubernetes/client-node';

const text = `apiVersion: v1
kind: Config
current-context: x
clusters:
- {name: c, cluster: {server: https://10.0.0.1:6443}}
users:
- {name: u, user: {token: x}}
contexts:
- {name: x, context: {cluster: c, user: u}}
`;
for (const more of ['', '- {name: other, context: {namespace: x}}\n']) {
  const config = new KubeConfig();
  try {
    config.loadFromString(text + more);
    console.log(config.getCurrentCluster().server);
  } catch (error) {
    console.log(error.message);
  }
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
https://10.0.0.1:6443
contexts[1].context.cluster is missing
SEEN
