#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 starts a credential plugin with a relative path from the working directory. The Kubernetes documentation
# ("client-go credential plugins") and kubectl take such a path from the folder of the kubeconfig. Paths of certificates in the same file are
# taken from that folder by this client, too.
# Seen on 2026-11-28:
#   config/kubeconfig: certificate authority config/ca.crt, plugin: spawn ./plugin ENOENT
#   ./kubeconfig: certificate authority ca.crt, plugin: started
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
mkdir config
cat >config/plugin <<'SH'
#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "x"}}'
SH
chmod +x config/plugin
cat >config/kubeconfig <<'YAML'
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: https://10.0.0.1:6443, certificate-authority: ca.crt}}
users:
- {name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
YAML
touch config/ca.crt
cat >run.mjs <<'JS'
import { relative } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';

for (const folder of ['config', '.']) {
  if (folder === '.') process.chdir('config');
  const config = new KubeConfig();
  config.loadFromFile(`${folder}/kubeconfig`);
  const started = config.applyToHTTPSOptions({}).then(() => 'started', (error) => error.message);
  console.log(`${folder}/kubeconfig: certificate authority ${relative('', config.getCurrentCluster().caFile)}, plugin: ${await started}`);
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
config/kubeconfig: certificate authority config/ca.crt, plugin: spawn ./plugin ENOENT
./kubeconfig: certificate authority ca.crt, plugin: started
SEEN
