#!/usr/bin/env bash
# Node.js 24.21.0 refuses a server if its option ca has only the intermediate authority that issued the certificate, or the certificate itself:
# OpenSSL wants a chain up to a self-signed certificate. Go trusts each certificate that it is given, so that a kubeconfig with an intermediate
# authority works with kubectl only. The option allowPartialTrustChain makes Node.js do the same.
# Seen on 2026-11-29 with Go 1.26:
#   root: Go verified, Node.js verified, with the option verified
#   intermediate: Go verified, Node.js UNABLE_TO_GET_ISSUER_CERT, with the option verified
#   leaf: Go verified, Node.js UNABLE_TO_GET_ISSUER_CERT_LOCALLY, with the option verified
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
new=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
echo basicConstraints=critical,CA:TRUE >authority
echo subjectAltName=IP:127.0.0.1 >server
{
  openssl req -x509 "${new[@]}" -keyout root.key -out root -days 30 -subj /CN=root
  openssl req "${new[@]}" -keyout intermediate.key -out request -subj /CN=intermediate
  openssl x509 -req -in request -CA root -CAkey root.key -days 30 -out intermediate -extfile authority
  openssl req "${new[@]}" -keyout key -out request -subj /CN=leaf
  openssl x509 -req -in request -CA intermediate -CAkey intermediate.key -days 30 -out leaf -extfile server
} 2>/dev/null
cat leaf intermediate >chain
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

const verify = (options) =>
  new Promise((done) => {
    const socket = connect({ port: process.argv[2], host: '127.0.0.1', ...options }, () => done('verified'));
    socket.on('error', (error) => done(error.code));
  });
const ca = readFileSync(process.argv[3]);
console.log(`Node.js ${await verify({ ca })}, with the option ${await verify({ ca, allowPartialTrustChain: true })}`);
process.exit();
JS
cat >main.go <<'GO'
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
)

func main() {
	pair, err := tls.LoadX509KeyPair("chain", "key")
	if err != nil {
		panic(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if connection, err := listener.Accept(); err == nil {
				go connection.Read(make([]byte, 1))
			}
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, name := range []string{"root", "intermediate", "leaf"} {
		authority, _ := os.ReadFile(name)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		result := "verified"
		if _, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool}); err != nil {
			result = err.Error()
		}
		fmt.Printf("%s: Go %s, ", name, result)
		node := exec.Command("node", "run.mjs", port, name)
		node.Stdout, node.Stderr = os.Stdout, os.Stderr
		if err := node.Run(); err != nil {
			panic(err)
		}
	}
}
GO
go run main.go | tee seen
diff - seen <<'SEEN'
root: Go verified, Node.js verified, with the option verified
intermediate: Go verified, Node.js UNABLE_TO_GET_ISSUER_CERT, with the option verified
leaf: Go verified, Node.js UNABLE_TO_GET_ISSUER_CERT_LOCALLY, with the option verified
SEEN
