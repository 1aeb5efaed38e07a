#!/usr/bin/env bash
# Runs the COPY and RUN steps of the Dockerfile's build stage in a clean folder, with the files that .dockerignore lets in and
# with an environment of its own, and then the command of the image. Needs npm's registry and a Node.js that kbctl supports, but no Docker.
set -euo pipefail
set -o noglob
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context" "$work/src" "$work/home" "$work/image"
cd "$root"
# Git's patterns and those of .dockerignore are alike as far as this file uses them.
git ls-files -z -- $(sed -n 's/^!//p' .dockerignore) | xargs -0 cp --parents --target-directory "$work/context"

copy() {
  local into="$work/src/${*: -1}" from
  for from in "${@:1:$#-1}"; do
    mkdir -p "$into"
    if [ -d "$work/context/$from" ]; then cp -R "$work/context/$from/." "$into"; else cp "$work/context/$from" "$into"; fi
  done
}

while read -r step arguments; do
  case $step in
    COPY) echo "COPY $arguments"; copy $arguments ;;
    RUN)
      echo "RUN $arguments"
      (cd "$work/src" && env -i HOME="$work/home" PATH="$PATH" NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-}" bash -euc "${arguments// \// $work/image/}")
      ;;
  esac
done < <(sed '/^FROM/{x;s/^/x/;/^xx/q;x}' Dockerfile)

mapfile -t entry < <(sed -n 's/^ENTRYPOINT//p; s/^CMD//p' Dockerfile | tr -d '[]" ' | tr , '\n')
cd /
env -i PATH="$PATH" NODE_ENV=production "${entry[@]/#\//$work/image/}"
