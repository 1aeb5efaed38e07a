#!/usr/bin/env bash
# client-go 0.36.3, with which kubectl reads a kubeconfig, sends no credential and reports no error if the context names a user that the file does not
# have, and if the URL begins with http:. With a token and a tokenFile, the file counts, but the token is sent if the file does not exist: after
# an unmounted volume, requests have the credential that the file replaced. Without a token, the same file is an error.
# Seen on 2026-11-29 with Go 1.26:
#   user that is missing: ""
#   token over http: ""
#   token and tokenFile: "Bearer of-the-file"
#   token and missing tokenFile: "Bearer of-the-field"
#   missing tokenFile: no such file or directory
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
go mod init example.com/finding 2>/dev/null
go get k8s.io/client-go/rest@v0.36.3 k8s.io/client-go/tools/clientcmd@v0.36.3 2>/dev/null
echo of-the-file >present
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// authorization returns the header that a client with this kubeconfig sends.
func authorization(server, named, user string) string {
	kubeconfig := `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: %s}}],
	  clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: true}}], users: [{name: u, user: %s}]}`
	os.WriteFile("config", []byte(fmt.Sprintf(kubeconfig, named, server, user)), 0o600)
	config, err := clientcmd.BuildConfigFromFlags("", "config")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return syscall.ENOENT.Error()
		}
		return err.Error()
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err.Error()
	}
	reply, err := client.Get(server)
	if err != nil {
		return err.Error()
	}
	body, _ := io.ReadAll(reply.Body)
	return fmt.Sprintf("%q", body)
}

func main() {
	show := http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		io.WriteString(writer, request.Header.Get("Authorization"))
	})
	https, plain := httptest.NewTLSServer(show).URL, httptest.NewServer(show).URL
	fmt.Println("user that is missing:", authorization(https, "other", "{token: of-the-field}"))
	fmt.Println("token over http:", authorization(plain, "u", "{token: of-the-field}"))
	fmt.Println("token and tokenFile:", authorization(https, "u", "{token: of-the-field, tokenFile: present}"))
	fmt.Println("token and missing tokenFile:", authorization(https, "u", "{token: of-the-field, tokenFile: absent}"))
	fmt.Println("missing tokenFile:", authorization(https, "u", "{tokenFile: absent}"))
}
GO
go run . 2>log | tee seen
diff - seen <<'SEEN'
user that is missing: ""
token over http: ""
token and tokenFile: "Bearer of-the-file"
token and missing tokenFile: "Bearer of-the-field"
missing tokenFile: no such file or directory
SEEN
