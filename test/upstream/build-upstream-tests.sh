#!/usr/bin/env bash
# Compiles the integration tests of Kubernetes from its Go module, changed so that the four hooks of the
# loops only announce their API server in the folder KBCTL_API_SERVERS, if that is set. Prints the folder of the binaries.
# KUBERNETES_VERSION chooses another version, as for build-control-plane.sh.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
control_plane="$here/../conformance/control-plane"
bash "$here/../conformance/build-control-plane.sh" >&2
folder="$(bash "$here/../conformance/build-control-plane.sh" --folder)"
# Another version has a module of its own there.
module="$folder/module"
[[ -d "$module" ]] || module="$control_plane"

packages=(controlplane servicecidr dualstack service)
tests="$folder/upstream-$(cat "$here"/*.go.txt "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)"
if [[ -x "$tests/${packages[-1]}.test" ]]; then
  echo "$tests"
  exit
fi

mkdir -p "$tests"
cp "$module"/go.mod "$module"/go.sum "$tests"
cd "$tests"
export GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=mod
kubernetes="$tests/kubernetes"
# Go takes no overlay of a file in its module cache, so the module is copied.
rm -rf "$kubernetes"
cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)" "$kubernetes"
trap 'rm -rf "$kubernetes"' EXIT
go mod edit -replace "k8s.io/kubernetes=$kubernetes"

# change FILE PATTERN REPLACEMENT...: changes each pattern, which occurs exactly once.
change() {
  local file="$kubernetes/$1"
  shift
  while (($# > 0)); do
    [[ "$(grep -cF -- "$1" "$file")" == 1 ]] || { echo "upstream tests: \"$1\" does not occur once in $file" >&2; exit 1; }
    PATTERN=$1 REPLACEMENT=$2 perl -pi -e 's/\Q$ENV{PATTERN}\E/$ENV{REPLACEMENT}/' "$file"
    shift 2
  done
}
# add PACKAGE FOLDER: adds loopsRunOutside to a package.
add() { sed "s/PACKAGE/$1/" "$here/outside.go.txt" >"$kubernetes/$2/loops_run_outside.go"; }

change pkg/controlplane/instance.go \
  'kubernetesServiceCtrl.Start(hookContext.Done())' \
  'if loopsRunOutside() { return c.announce(hookContext, publicServicePort) }; kubernetesServiceCtrl.Start(hookContext.Done())' \
  'kubernetesServiceCtrl.Stop()' \
  'if loopsRunOutside() { return c.withdraw() }; kubernetesServiceCtrl.Stop()' \
  'controller.Start(hookContext)' \
  'if !loopsRunOutside() { controller.Start(hookContext) }'
change pkg/controlplane/apiserver/server.go \
  'go systemnamespaces.NewController(' \
  'if loopsRunOutside() { return nil }; go systemnamespaces.NewController('
change pkg/registry/core/rest/storage_core.go \
  'return "start-service-ip-repair-controllers", func(context genericapiserver.PostStartHookContext) error {' \
  'return "start-service-ip-repair-controllers", func(context genericapiserver.PostStartHookContext) error { if loopsRunOutside() { return p.stopRepairs() };'
# These API servers advertise addresses within their own service range, which a spec may not have.
sed -i 's/"10\.0\.1\.%v"/"10.1.1.%v"/' "$kubernetes/test/integration/controlplane/kube_apiserver_test.go"
grep -qF '"10.1.1.%v"' "$kubernetes/test/integration/controlplane/kube_apiserver_test.go"
add controlplane pkg/controlplane
add apiserver pkg/controlplane/apiserver
add rest pkg/registry/core/rest
cp "$here/stop-repairs.go.txt" "$kubernetes/pkg/registry/core/rest/stop_repairs.go"
cp "$here/announce.go.txt" "$kubernetes/pkg/controlplane/announce.go"

# The API servers of the tests keep certificates here.
mkdir -p "$tests/sources/kubernetes/k8s.io/kubernetes@$(go list -m -f '{{.Version}}' k8s.io/kubernetes)/cmd/kube-apiserver/app/testing/testdata"

for package in "${packages[@]}"; do
  echo "upstream tests: building $package" >&2
  go test -c -trimpath -vet=off -ldflags '-s -w' -o "$tests/$package.test.new" "k8s.io/kubernetes/test/integration/$package" >&2
  mv "$tests/$package.test.new" "$tests/$package.test"
done
echo "$tests"
