#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 refuses each request to the cluster that it chooses itself: without a kubeconfig, that is http://localhost:8080, and
# in a pod with KUBERNETES_SERVICE_PORT=8080 its URL begins with http:, too. Requests over http need skipTLSVerify, which it does not set there.
# kubectl uses the same default, and sends the request.
# Seen on 2026-11-28:
#   http://localhost:8080: HTTP protocol is not allowed when skipTLSVerify is not set or false
#   http://127.0.0.1:8080: HTTP protocol is not allowed when skipTLSVerify is not set or false
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1
mkdir -p pod/var/run/secrets/kubernetes.io/serviceaccount
echo x | tee pod/var/run/secrets/kubernetes.io/serviceaccount/{token,ca.crt} >/dev/null
cat >run.mjs <<'JS'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const list = async (config) => {
  const answer = config.makeApiClient(CoreV1Api).listNamespace();
  console.log(`${config.getCurrentCluster().server}: ${await answer.then(() => 'listed', (error) => error.message)}`);
};
Object.assign(process.env, { HOME: `${process.cwd()}/nothing`, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '8080' });
delete process.env.KUBECONFIG;
const outside = new KubeConfig();
outside.loadFromDefault();
await list(outside);
const inside = new KubeConfig();
inside.loadFromCluster('pod');
await list(inside);
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
http://localhost:8080: HTTP protocol is not allowed when skipTLSVerify is not set or false
http://127.0.0.1:8080: HTTP protocol is not allowed when skipTLSVerify is not set or false
SEEN
