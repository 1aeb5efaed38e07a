#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 refuses a kubeconfig in which a tab separates two entries of a flow mapping (js-yaml: "deficient indentation").
# YAML 1.2 allows tabs as separation there (section 6.1); kubectl 1.36.3 and the package yaml 2.9.1 read the same file.
# Seen on 2026-11-28 with js-yaml 5.5.0:
#   yaml: https://10.0.0.1:6443
#   client-node: deficient indentation
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1 js-yaml@5.5.0 yaml@2.9.1
cat >run.mjs <<'JS'
import { KubeConfig } from '@kubernetes/client-node';
import { parse } from 'yaml';

const text = `apiVersion: v1
kind: Config
clusters:
- {name: c,\tcluster: {server: https://10.0.0.1:6443}}
users:
- {name: u, user: {token: x}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
`;
console.log(`yaml: ${parse(text).clusters[0].cluster.server}`);
try {
  const config = new KubeConfig();
  config.loadFromString(text);
  console.log(`client-node: ${config.getCurrentCluster().server}`);
} catch (error) {
  console.log(`client-node: ${/deficient indentation/.exec(error.message)?.[0] ?? error.message}`);
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
yaml: https://10.0.0.1:6443
client-node: deficient indentation
SEEN
