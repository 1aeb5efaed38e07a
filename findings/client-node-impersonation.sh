#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 sends only the user of an impersonation, and drops as-groups, as-uid and as-user-extra of the kubeconfig without
# an error. kubectl 1.36.3 sends all four (Kubernetes documentation, "User impersonation"), so that one kubeconfig has other rights here.
# Seen on 2026-11-28:
#   {"Impersonate-User":"reader","Authorization":"Bearer x"}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
cat >run.mjs <<'JS'
import { KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromString(`apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: https://10.0.0.1:6443}}
users:
- {name: u, user: {token: x, as: reader, as-groups: [auditors], as-uid: "1", as-user-extra: {scopes: [view]}}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
`);
const options = {};
await config.applyToHTTPSOptions(options);
console.log(JSON.stringify(options.headers));
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
{"Impersonate-User":"reader","Authorization":"Bearer x"}
SEEN
