#!/usr/bin/env bash
# Node.js 24.21.0 keeps the timer of spawn's option timeout if the program does not exist: after the event "error" (ENOENT) the process stays alive
# until the timeout. There is no child that the timer could end, and no handle of it that the caller could release.
# Seen on 2026-11-28, active resources after the error:
#   {}: ENOENT, 0 timers
#   {"timeout":600000}: ENOENT, 1 timers
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.mjs <<'JS'
import { spawn } from 'node:child_process';
import { once } from 'node:events';

for (const options of [{}, { timeout: 600_000 }]) {
  const [error] = await once(spawn('./nothing', [], options).on('error', () => {}), 'error');
  await new Promise(setImmediate);
  const left = process.getActiveResourcesInfo().filter((name) => name === 'Timeout');
  console.log(`${JSON.stringify(options)}: ${error.code}, ${left.length} timers`);
}
process.exit();
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
{}: ENOENT, 0 timers
{"timeout":600000}: ENOENT, 1 timers
SEEN
