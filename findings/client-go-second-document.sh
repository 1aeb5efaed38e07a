#!/usr/bin/env bash
# client-go 0.36.3, with which kubectl reads a kubeconfig, takes the last of two equal keys in a mapping and only the first of several YAML documents,
# without an error for the others. Two clusters of one name are an error in the same file. YAML 1.2 (section 3.2.1.1) has unique keys, and js-yaml
# and yaml refuse such a file. Of two kubeconfigs that are written one after the other, a line with --- thus decides which server is used.
# Seen on 2026-11-29 with Go 1.26:
#   one key twice: https://10.0.0.2:6443
#   two documents: https://10.0.0.1:6443
#   two clusters of one name: error
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
go mod init example.com/finding 2>/dev/null
go get k8s.io/client-go/tools/clientcmd@v0.36.3 2>/dev/null
cat >main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	const context = "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
	const first, second = `server: "https://10.0.0.1:6443"`, `server: "https://10.0.0.2:6443"`
	one := func(server string) string { return "{name: c, cluster: {" + server + "}}" }
	for _, file := range []struct{ name, text string }{
		{"one key twice", "clusters: [" + one(first+", "+second) + "]\n" + context},
		{"two documents", "clusters: [" + one(first) + "]\n" + context + "---\nclusters: [" + one(second) + "]\n" + context},
		{"two clusters of one name", "clusters: [" + one(first) + ", " + one(second) + "]\n" + context},
	} {
		result := "error"
		if config, err := clientcmd.RESTConfigFromKubeConfig([]byte(file.text)); err == nil {
			result = config.Host
		}
		fmt.Printf("%s: %s\n", file.name, result)
	}
}
GO
go run . | tee seen
diff - seen <<'SEEN'
one key twice: https://10.0.0.2:6443
two documents: https://10.0.0.1:6443
two clusters of one name: error
SEEN
