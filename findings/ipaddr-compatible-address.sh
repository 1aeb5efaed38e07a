#!/usr/bin/env bash
# ipaddr.js 2.5.0 reads ::192.0.2.1, an IPv4-compatible address (RFC 4291, section 2.5.5.1), as the IPv4-mapped ::ffff:192.0.2.1, which is another
# address. Both spellings of one address thus differ, and their networks, too. Go (net/netip) and Node.js keep the 96 zero bits.
# Seen on 2026-11-29 with Node.js 24 and Go 1.26:
#   ipaddr.js, ::192.0.2.1: ::ffff:c000:201 ipv4Mapped
#   ipaddr.js, ::c000:201: ::c000:201 unicast
#   Node.js, ::192.0.2.1: [::c000:201]
#   Go, ::192.0.2.1: ::c000:201 mapped: false
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts ipaddr.js@2.5.0
cat >run.mjs <<'JS'
import ipaddr from 'ipaddr.js';

for (const text of ['::192.0.2.1', '::c000:201']) {
  const address = ipaddr.parse(text);
  console.log(`ipaddr.js, ${text}: ${address.toRFC5952String()} ${address.range()}`);
}
console.log(`Node.js, ::192.0.2.1: ${new URL('http://[::192.0.2.1]').hostname}`);
JS
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/netip"
)

func main() {
	address := netip.MustParseAddr("::192.0.2.1")
	fmt.Printf("Go, ::192.0.2.1: %s mapped: %t\n", address, address.Is4In6())
}
GO
{
  node run.mjs
  go run main.go
} | tee seen
diff - seen <<'SEEN'
ipaddr.js, ::192.0.2.1: ::ffff:c000:201 ipv4Mapped
ipaddr.js, ::c000:201: ::c000:201 unicast
Node.js, ::192.0.2.1: [::c000:201]
Go, ::192.0.2.1: ::c000:201 mapped: false
SEEN
