#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 starts a credential plugin without the variable KUBERNETES_EXEC_INFO. The Kubernetes documentation ("client-go
# credential plugins") promises it to each plugin: it has the version of the answer that is expected, and the cluster with provideClusterInfo.
# Plugins for several clusters need it, and work with kubectl 1.36.3.
# Seen on 2026-11-28:
#   Bearer no information
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >plugin <<'SH'
#!/bin/sh
status="{\"token\": \"${KUBERNETES_EXEC_INFO:-no information}\"}"
echo "{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": $status}"
SH
chmod +x plugin
cat >run.mjs <<'JS'
import { KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromString(`apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: https://10.0.0.1:6443}}
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ${process.cwd()}/plugin
      interactiveMode: Never
      provideClusterInfo: true
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
`);
const options = {};
await config.applyToHTTPSOptions(options);
console.log(options.headers.Authorization);
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
Bearer no information
SEEN
