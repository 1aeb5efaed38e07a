#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 reads YAML by the rules of version 1.2 (js-yaml 5), kubectl by those of 1.1 (sigs.k8s.io/yaml 1.6.0). One manifest has
# other file modes here (400 is 0620 in octal, not 0400), "no" is a text, and a merge key adds nothing: a kubeconfig with "<<" has no credential.
# Seen on 2026-11-28 with js-yaml 5.5.0:
#   client-node: [400,"no",null]
#   kubectl: [256,false,"x"]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @kubernetes/client-node@2.0.1 js-yaml@5.5.0
go mod init example.com/finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
cat >manifest.yaml <<'YAML'
apiVersion: example.com/v1
kind: Example
defaultMode: 0400
automountServiceAccountToken: no
common: &common {token: x}
user: {<<: *common}
YAML
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { loadYaml } from '@kubernetes/client-node';

const { defaultMode, automountServiceAccountToken, user } = loadYaml(readFileSync('manifest.yaml', 'utf8'));
console.log('client-node:', JSON.stringify([defaultMode, automountServiceAccountToken, user.token ?? null]));
JS
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	text, _ := os.ReadFile("manifest.yaml")
	var manifest map[string]any
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		panic(err)
	}
	user := manifest["user"].(map[string]any)
	line, _ := json.Marshal([]any{manifest["defaultMode"], manifest["automountServiceAccountToken"], user["token"]})
	fmt.Println("kubectl:", string(line))
}
GO
{ node run.mjs && go run .; } | tee seen
diff - seen <<'SEEN'
client-node: [400,"no",null]
kubectl: [256,false,"x"]
SEEN
