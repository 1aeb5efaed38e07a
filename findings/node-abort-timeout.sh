#!/usr/bin/env bash
# The timer of AbortSignal.timeout does not keep a process of Node.js 24.21.0 alive: a program that only waits for its event ends before the time is
# over, with code 13 if the wait is a top-level await. setTimeout of the same length keeps it alive. The documentation of AbortSignal.timeout
# does not mention it.
# Seen on 2026-11-28:
#   setTimeout: waited
#   setTimeout: exit code 0
#   AbortSignal: exit code 13
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.mjs <<'JS'
import { once } from 'node:events';

process.on('exit', (code) => console.log(`${process.argv[2]}: exit code ${code}`));
if (process.argv[2] === 'setTimeout') await new Promise((done) => setTimeout(done, 1000));
else await once(AbortSignal.timeout(1000), 'abort');
console.log(`${process.argv[2]}: waited`);
JS
for wait in setTimeout AbortSignal; do node run.mjs $wait 2>/dev/null || true; done | tee seen
diff - seen <<'SEEN'
setTimeout: waited
setTimeout: exit code 0
AbortSignal: exit code 13
SEEN
