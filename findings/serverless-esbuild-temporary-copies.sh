#!/usr/bin/env bash
# serverless-esbuild 1.57.2: each `package` leaves an unzipped copy of each function in the temporary folder of the system. The plugin copies
# the files of a function into a folder of its own there, writes the archive, and removes the folder in the finalizer of its scope. The finalizer calls
# the remove function of @effect/platform without `recursive`, which refuses a folder, and discards the error. The command succeeds, so that build
# machines fill up without a word, and a copy of the code stays after the package is deleted. Set TMPDIR to a folder that the build removes.
# Seen on 2026-11-29 with Node.js 24 and osls 4.3.1, two functions packaged twice:
#   folders left: first-PID-TIME-RANDOM first-PID-TIME-RANDOM second-PID-TIME-RANDOM second-PID-TIME-RANDOM
#   files in them: first.js first.js second.js second.js
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund osls@4.3.1 serverless-esbuild@1.57.2 esbuild@0.28.2
cat >serverless.yml <<'YAML'
service: copies
provider:
  name: aws
  runtime: nodejs22.x
package:
  individually: true
plugins:
  - serverless-esbuild
functions:
  first:
    handler: first.handler
  second:
    handler: second.handler
YAML
echo 'export const handler = async () => 1;' | tee first.js >second.js
mkdir temporary
export TMPDIR="$folder/temporary" AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none SLS_TELEMETRY_DISABLED=1
npx osls package >/dev/null 2>&1
npx osls package >/dev/null 2>&1
{
  echo "folders left:" $(ls temporary | grep -E '^(first|second)-' | sed -E 's/-[0-9]+-[0-9]+-[0-9a-f]{8}$/-PID-TIME-RANDOM/')
  echo "files in them:" $(find temporary/first-* temporary/second-* -type f -printf '%f\n' | sort)
} | tee seen
diff - seen <<'SEEN'
folders left: first-PID-TIME-RANDOM first-PID-TIME-RANDOM second-PID-TIME-RANDOM second-PID-TIME-RANDOM
files in them: first.js first.js second.js second.js
SEEN
