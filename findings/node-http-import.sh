#!/usr/bin/env bash
# Importing one name from node:http loads undici in Node.js 24.21.0, which require() of the same name does not: an import reads all exports, and
# those of WebSocket load undici when they are read. In a function that only uses node:http, that is a part of each cold start.
# Seen on 2026-11-28, internal modules that contain undici:
#   import.mjs: function 1
#   require.cjs: function 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo "import { request } from 'node:http'" >import.mjs
echo "const { request } = require('node:http')" >require.cjs
for file in import.mjs require.cjs; do
  echo "console.log('$file:', typeof request, process.moduleLoadList.filter((name) => name.endsWith('deps/undici/undici')).length)" >>$file
  node $file
done | tee seen
diff - seen <<'SEEN'
import.mjs: function 1
require.cjs: function 0
SEEN
