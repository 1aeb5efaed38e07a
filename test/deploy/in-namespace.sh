#!/usr/bin/env bash
# Runs a command in a network namespace of its own, in which API servers have addresses that functions connect to (functions refuse
# loopback addresses), and a name. All its processes end with it.
#
#   in-namespace.sh COMMAND...
set -euo pipefail

if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null && sudo -n true 2>/dev/null || {
    echo "the deploy tests need a network namespace: run them as root, or allow sudo without a password" >&2
    exit 1
  }
  exec sudo -n -E env "PATH=$PATH" bash "$0" "$@"
fi

for program in ip mount setpriv unshare; do
  command -v "$program" >/dev/null || {
    echo "there is no $program: install util-linux and iproute2" >&2
    exit 1
  }
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec unshare --net --mount --pid --fork --kill-child --mount-proc bash -euo pipefail -c '
  ip link set lo up
  for address in 10.9.8.7 10.9.8.8; do ip address add "$address/32" dev lo; done
  file=$(mktemp)
  echo "nameserver 127.0.0.1" >"$file"
  chmod 644 "$file"
  mount --bind "$file" /etc/resolv.conf
  rm "$file"
  node --import ./tools/check-node.mjs test/deploy/name-server.ts &
  exec "$@"' namespace "$@"
