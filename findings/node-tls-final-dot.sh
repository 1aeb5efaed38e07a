#!/usr/bin/env bash
# Node.js 24.21.0 sends the final dot of a host name with TLS (SNI), and servers in Go, such as kube-apiserver, refuse the handshake. RFC 6066
# (section 3) has the name without the dot. A client in Go omits it, so that https://name.example.com.:6443 works with kubectl only. The
# certificate is no reason: Node.js itself compares names without the dot.
# Seen on 2026-11-29 with Go 1.26:
#   Go, name.example.com: "name.example.com"
#   Go, name.example.com.: "name.example.com"
#   Node.js, name.example.com: "name.example.com"
#   Node.js, name.example.com.: tlsv1 alert decode error
#   Node.js, name.example.com. with servername: "name.example.com"
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out certificate -days 30 -subj /CN=server \
  -addext subjectAltName=DNS:name.example.com 2>/dev/null
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:https';

const lookup = (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]);
const ask = (host, servername) =>
  new Promise((done) => {
    const options = { host, port: process.argv[2], lookup, agent: new Agent({ ca: readFileSync('certificate'), servername }) };
    get(options, async (reply) => done(Buffer.concat(await reply.toArray()))).on('error', (error) =>
      done(/tlsv1 alert [a-z ]+/.exec(error.message) ?? error.message),
    );
  });
console.log(`Node.js, name.example.com: ${await ask('name.example.com')}`);
console.log(`Node.js, name.example.com.: ${await ask('name.example.com.')}`);
console.log(`Node.js, name.example.com. with servername: ${await ask('name.example.com.', 'name.example.com')}`);
JS
cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	name := func(writer http.ResponseWriter, request *http.Request) { fmt.Fprintf(writer, "%q", request.TLS.ServerName) }
	server := http.Server{Handler: http.HandlerFunc(name), ErrorLog: log.New(io.Discard, "", 0)}
	go server.ServeTLS(listener, "certificate", "key")
	certificate, _ := os.ReadFile("certificate")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	for _, host := range []string{"name.example.com", "name.example.com."} {
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		}
		client := http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		reply, err := client.Get("https://" + host + ":" + port)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(reply.Body)
		fmt.Printf("Go, %s: %s\n", host, body)
	}
	node := exec.Command("node", "run.mjs", port)
	node.Stdout, node.Stderr = os.Stdout, os.Stderr
	if err := node.Run(); err != nil {
		panic(err)
	}
}
GO
go run main.go | tee seen
diff - seen <<'SEEN'
Go, name.example.com: "name.example.com"
Go, name.example.com.: "name.example.com"
Node.js, name.example.com: "name.example.com"
Node.js, name.example.com.: tlsv1 alert decode error
Node.js, name.example.com. with servername: "name.example.com"
SEEN
