#!/usr/bin/env bash
# Unpacks promtool and prometheus of the distribution's package into a cache folder, without installing a service, and prints the folder.
# With PROMETHEUS_FOLDER set, prints that one.
set -euo pipefail

if [[ -n "${PROMETHEUS_FOLDER:-}" ]]; then
  echo "$PROMETHEUS_FOLDER"
  exit
fi
folder="${XDG_CACHE_HOME:-$HOME/.cache}/kube-bootstrap-controller/prometheus"
if [[ ! -x "$folder/promtool" && "${1:-}" != --folder ]]; then
  command -v apt-get >/dev/null || {
    echo "promtool: needs Debian's package prometheus, or PROMETHEUS_FOLDER with promtool and prometheus" >&2
    exit 1
  }
  new=$(mktemp -d)
  trap 'rm -rf "$new"' EXIT
  (cd "$new" && apt-get download prometheus && dpkg -x prometheus_*.deb unpacked) >&2
  mkdir -p "$folder"
  mv "$new/unpacked/usr/bin/prometheus" "$folder/"
  mv "$new/unpacked/usr/bin/promtool" "$folder/"
fi
echo "$folder"
