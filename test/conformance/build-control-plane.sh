#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-apiserver-hooks-off and kubectl from the Go module beside this script, once, into a cache
# folder named after the module's content. The folder is printed on standard output, all else on standard error.
#
#   build-control-plane.sh            build what is missing
#   build-control-plane.sh --folder   only print the folder
#
# KUBERNETES_VERSION=v1.37.2 builds another version than that of go.mod, from a copy of the module in the cache folder.
# With KUBEBUILDER_ASSETS set, its etcd and kube-apiserver are used, and only the other two come from here.
set -euo pipefail

module="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/control-plane"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/kube-bootstrap-controller"

say() { printf 'control plane: %s\n' "$*" >&2; }

fail() {
  say "$1"
  say "install Go 1.26 (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver ${version}"
  exit 1
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

own_version="$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$module/go.mod")"
version="${KUBERNETES_VERSION:-$own_version}"
if [[ ! "$version" =~ ^v1\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]]; then
  say "KUBERNETES_VERSION=$version is not a version such as v1.37.2 or v1.38.0-rc.0"
  exit 1
fi
folder="$cache/$(cd "$module" && cat go.mod go.sum ./*.go | sha256 | cut -c1-16)"
[[ "$version" == "$own_version" ]] || folder="$folder-$version"

if [[ "${1:-}" == --folder ]]; then
  echo "$folder"
  exit
fi

if [[ -n "${KUBEBUILDER_ASSETS:-}" ]]; then
  for name in etcd kube-apiserver; do
    [[ -x "$KUBEBUILDER_ASSETS/$name" ]] || fail "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no executable file $name"
  done
  say "etcd and kube-apiserver come from KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS"
fi

# The file `control-plane` is renamed into place last. If it exists, the build is complete.
ready() { [[ -x "$folder/control-plane" ]]; }

if ready; then
  echo "$folder"
  exit
fi

if ! command -v go >/dev/null; then
  [[ -z "${KUBEBUILDER_ASSETS:-}" ]] || { say "there is no Go: tests that need kube-apiserver-hooks-off or kubectl will fail"; exit; }
  fail "there is no Go to build kube-apiserver $version with"
fi
if [[ "$version" != "$own_version" ]]; then
  mkdir -p "$folder/module"
  cp "$module"/*.go "$folder/module"
  # Removes staging modules that this version does not have.
  theirs="$(GOWORK=off go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p' || true)"
  [[ -n "$theirs" ]] || fail "there is no module k8s.io/kubernetes $version"
  awk 'NR == FNR { if ($2 == "=>") staging[$1]; next } ($2 == "=>" || /^\tk8s.io\/.*indirect/) && !($1 in staging) { next } 1' \
    "$theirs" "$module/go.mod" |
    sed "s/$own_version/$version/g; s/v0${own_version#v1}/v0${version#v1}/g" >"$folder/module/go.mod"
  module="$folder/module"
  # A pre-release may be available before the modules that it is built with, of which some are new.
  for name in $(awk '$2 == "v0.0.0" { print $1 }' "$theirs"); do
    GOWORK=off go list -m "$name@v0${version#v1}" >/dev/null 2>&1 || {
      say "Kubernetes $version cannot be built: module $name v0${version#v1} is not available. Choose another version"
      exit 1
    }
    go mod edit -replace "$name=$name@v0${version#v1}" "$module/go.mod"
  done
  # The checksums of another version are not committed. Go checks them against its own database.
  (cd "$module" && GOWORK=off go mod tidy >&2) || fail "Go cannot resolve the modules of kube-apiserver $version"
fi
cd "$module"
GOWORK=off go list -m >/dev/null || fail "$(go version) cannot build this module"

mkdir -p "$folder"
if command -v flock >/dev/null; then
  exec 9>"$folder.lock"
  flock --nonblock 9 || { say "another build of it is under way: waiting"; flock 9; }
  if ready; then
    echo "$folder"
    exit
  fi
fi

say "building etcd, kube-apiserver and kubectl $version into $folder"
say "this happens once; on 2 cores it takes about 4 minutes"
temporary="$(mktemp "$folder/building.XXXXXX")"
trap 'rm -f "$temporary"' EXIT
CGO_ENABLED=0 GOWORK=off go build -buildvcs=false -mod=readonly -trimpath \
  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$temporary" . >&2
for name in etcd kube-apiserver kube-apiserver-hooks-off kubectl; do
  ln -s control-plane "$folder/$name" 2>/dev/null || [[ -L "$folder/$name" ]]
done
mv -f "$temporary" "$folder/control-plane"
say "built in $SECONDS s"
echo "$folder"
