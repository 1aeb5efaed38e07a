#!/usr/bin/env bash
# Installs moto (the AWS emulator of the deploy test) and cfn-lint from the requirements beside this script, once, into a
# Python environment in a cache folder named after them. The folder is printed on standard output, all else on standard error.
#
#   install-emulator.sh            install what is missing
#   install-emulator.sh --folder   only print the folder
set -euo pipefail

requirements="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/requirements.txt"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/kube-bootstrap-controller"

say() { printf 'emulator: %s\n' "$*" >&2; }

fail() {
  say "$1"
  say "install Python 3.10 or later with its venv and pip (Debian: apt-get install python3-venv python3-pip), and see that pip reaches its index"
  exit 1
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

folder="$cache/emulator-$(sha256 <"$requirements" | cut -c1-16)"

# The file `ready` is created last. If it exists, the installation is complete.
if [[ "${1:-}" == --folder || -e "$folder/ready" ]]; then
  echo "$folder"
  exit
fi

command -v python3 >/dev/null || fail "there is no python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$(python3 --version) is too old"
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "this python3 has no venv or no pip"

mkdir -p "$cache"
if command -v flock >/dev/null; then
  exec 9>"$folder.lock"
  flock --nonblock 9 || { say "another installation of it is under way: waiting"; flock 9; }
  if [[ -e "$folder/ready" ]]; then
    echo "$folder"
    exit
  fi
fi

say "installing $(grep -v '^#' "$requirements" | tr '\n' ' ')into $folder"
# An incomplete environment is deleted. Its scripts contain the path of their folder, so it cannot be built elsewhere and moved.
rm -rf "$folder"
python3 -m venv "$folder" >&2 || fail "python3 -m venv failed"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --requirement "$requirements" >&2 9>&- ||
  fail "pip could not install them"
touch "$folder/ready"
say "installed in $SECONDS s"
echo "$folder"
