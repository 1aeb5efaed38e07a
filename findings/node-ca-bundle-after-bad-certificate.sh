#!/usr/bin/env bash
# Node.js 24.21.0 takes only the certificates of a CA bundle that stand before the first one that does not parse, without an error. A server of a
# CA after it is then unknown. Go ignores the bad certificate alone, so that kubectl works with the same bundle. As a list of texts, one for each
# certificate, the bundle works in Node.js, too. Here the bad certificate is cut off.
# Seen on 2026-11-29 with Go 1.26:
#   Go, good and bad: verified
#   Go, bad and good: verified
#   Node.js, good and bad: verified
#   Node.js, bad and good: DEPTH_ZERO_SELF_SIGNED_CERT
#   Node.js, list of bad and good: verified
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out certificate -days 30 -subj /CN=server \
  -addext subjectAltName=IP:127.0.0.1 2>/dev/null
{ sed -n 1,2p certificate && tail -n 1 certificate; } >bad
cat certificate bad >'good and bad'
cat bad certificate >'bad and good'
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

const verify = (name, ca) =>
  new Promise((done) => {
    const socket = connect({ port: process.argv[2], host: '127.0.0.1', ca }, () => done('verified'));
    socket.on('error', (error) => done(error.code));
  }).then((result) => console.log(`Node.js, ${name}: ${result}`));
await verify('good and bad', readFileSync('good and bad'));
await verify('bad and good', readFileSync('bad and good'));
await verify('list of bad and good', [readFileSync('bad'), readFileSync('certificate')]);
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
	pair, err := tls.LoadX509KeyPair("certificate", "key")
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
	for _, name := range []string{"good and bad", "bad and good"} {
		bundle, _ := os.ReadFile(name)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(bundle)
		result := "verified"
		if _, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool}); err != nil {
			result = err.Error()
		}
		fmt.Printf("Go, %s: %s\n", name, result)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	node := exec.Command("node", "run.mjs", port)
	node.Stdout, node.Stderr = os.Stdout, os.Stderr
	if err := node.Run(); err != nil {
		panic(err)
	}
}
GO
go run main.go | tee seen
diff - seen <<'SEEN'
Go, good and bad: verified
Go, bad and good: verified
Node.js, good and bad: verified
Node.js, bad and good: DEPTH_ZERO_SELF_SIGNED_CERT
Node.js, list of bad and good: verified
SEEN
