#!/usr/bin/env bash
# Builds the Go example into the file that is named. Its modules come from the module proxy, once, into Go's own cache.
#
#   build-examples.sh FILE
set -euo pipefail

command -v go >/dev/null || {
  echo "examples: there is no Go to build examples/allocate.go with: install Go 1.24 or later (https://go.dev/dl)" >&2
  exit 1
}
cd "$(dirname "${BASH_SOURCE[0]}")/../../examples"
CGO_ENABLED=0 GOWORK=off go build -buildvcs=false -mod=readonly -trimpath -o "$1" .
