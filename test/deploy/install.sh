#!/usr/bin/env bash
# Installs software for the tests, once, into a cache folder that is named after the file with its versions. Prints the folder on
# standard output, all else on standard error.
#
#   install.sh emulator              moto, the AWS emulator, and cfn-lint (requirements.txt)
#   install.sh runtime-client        Amazon's runtime client, which is compiled (runtime-client/)
#   install.sh tables                the table engines of npm run test:tables (../tables/requirements.txt)
#   install.sh NAME --folder         only print the folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

name="$1"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/kube-bootstrap-controller"

say() { printf '%s: %s\n' "$name" "$*" >&2; }

fail() {
  printf "$name: %s\n" "$@" >&2
  exit 1
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# An incomplete Python environment is deleted. Its scripts contain the path of their folder, so it cannot be built elsewhere and moved.
install_python() {
  local advice="install Python 3.10 or later with its venv and pip (Debian: apt-get install python3-venv python3-pip), and see that pip reaches its index"
  command -v python3 >/dev/null || fail "there is no python3" "$advice"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$(python3 --version) is too old" "$advice"
  python3 -c 'import ensurepip, venv' 2>/dev/null || fail "this python3 has no venv or no pip" "$advice"
  python3 -m venv "$folder" >&2 || fail "python3 -m venv failed" "$advice"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --requirement "$pins" >&2 9>&- ||
    fail "pip could not install it" "$advice"
}

install_tables() {
  local advice="install Rust with cargo (https://rustup.rs), and see that cargo reaches crates.io" crate version
  install_python
  read -r _ crate version < <(grep '^# dynoxide-rs ' "$pins")
  command -v cargo >/dev/null || fail "there is no cargo" "$advice"
  cargo install "$crate" --version "$version" --locked --quiet --root "$folder" \
    --no-default-features --features native-sqlite,http-server,cli >&2 9>&- || fail "cargo could not compile $crate" "$advice"
}

install_runtime_client() {
  local log="$folder/install.log"
  mkdir "$folder"
  cp runtime-client/*.json "$folder"
  if ! (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts=false --foreground-scripts >"$log" 2>&1 9>&-); then
    tail -n 20 "$log" >&2
    fail "npm could not compile it" "install cmake, make, g++ and python3 (Debian: apt-get install cmake make g++ python3), and see that npm reaches its registry and nodejs.org"
  fi
}

case "$name" in
emulator) pins=requirements.txt install=install_python ;;
tables) pins=../tables/requirements.txt install=install_tables ;;
runtime-client) pins=runtime-client/package-lock.json install=install_runtime_client ;;
*) fail "there is nothing of this name to install" ;;
esac
folder="$cache/$name-$(sha256 <"$pins" | cut -c1-16)"

# The file `ready` is created last. If it exists, the installation is complete.
if [[ "${2:-}" == --folder || -e "$folder/ready" ]]; then
  echo "$folder"
  exit
fi

mkdir -p "$cache"
if command -v flock >/dev/null; then
  exec 9>"$folder.lock"
  flock --nonblock 9 || { say "another installation of it is under way: waiting"; flock 9; }
  if [[ -e "$folder/ready" ]]; then
    echo "$folder"
    exit
  fi
fi

say "installing it into $folder"
rm -rf "$folder"
"$install"
touch "$folder/ready"
say "installed in $SECONDS s"
echo "$folder"
