#!/usr/bin/env bash
# Sees that there is a Chromium for the tests in a real browser, and prints its path on standard output, all else on
# standard error: the one that CHROMIUM_PATH names, else the first of those below on the PATH. On a Debian where we are
# root a missing one is installed.
#
#   install-browser.sh           install it if it is missing
#   install-browser.sh --path    only print the path, or nothing
set -euo pipefail

say() { printf 'browser: %s\n' "$*" >&2; }

fail() {
  say "$1"
  say "install Chromium (Debian: apt-get install chromium), or say where one is: CHROMIUM_PATH=/some/chrome"
  exit 1
}

find_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome || true; }

if [[ -n "${CHROMIUM_PATH:-}" ]]; then
  [[ -x "$CHROMIUM_PATH" ]] || fail "CHROMIUM_PATH names $CHROMIUM_PATH, which is no program"
  echo "$CHROMIUM_PATH"
  exit
fi

browser=$(find_browser)
if [[ -z "$browser" && "${1:-}" != --path ]]; then
  command -v apt-get >/dev/null || fail "there is no chromium on the PATH"
  [[ "$(id -u)" -eq 0 ]] || fail "there is no chromium on the PATH, and only root can install it"
  say "installing Debian's chromium"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium; } >&2 || fail "apt-get could not install it"
  browser=$(find_browser)
  [[ -n "$browser" ]] || fail "apt-get installed chromium, and none is on the PATH"
  say "installed in $SECONDS s"
fi
[[ -z "$browser" ]] || echo "$browser"
