#!/usr/bin/env bash
# Fake timers of jest 30.5.2 leave AbortSignal.timeout and node:timers/promises real: advancing them by an hour ends no deadline that is made with
# these, while setTimeout ends. A test of a deadline then waits for the real time, or passes although nothing has expired.
# Seen on 2026-11-29 after jest.advanceTimersByTimeAsync(3600000), with delays of one minute:
#   setTimeout: over
#   AbortSignal.timeout: still waiting
#   node:timers/promises: still waiting
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts jest@30.5.2
cat >run.test.js <<'JS'
const { writeFileSync } = require('node:fs');
const { setTimeout: wait } = require('node:timers/promises');

test('a minute', async () => {
  jest.useFakeTimers();
  const over = new Set();
  setTimeout(() => over.add('setTimeout'), 60_000);
  AbortSignal.timeout(60_000).addEventListener('abort', () => over.add('AbortSignal.timeout'));
  wait(60_000, undefined, { ref: false }).then(() => over.add('node:timers/promises'));
  await jest.advanceTimersByTimeAsync(3_600_000);
  const lines = ['setTimeout', 'AbortSignal.timeout', 'node:timers/promises'].map(
    (name) => `${name}: ${over.has(name) ? 'over' : 'still waiting'}\n`,
  );
  writeFileSync('seen', lines.join(''));
});
JS
npx jest --silent >output 2>&1
cat seen
diff - seen <<'SEEN'
setTimeout: over
AbortSignal.timeout: still waiting
node:timers/promises: still waiting
SEEN
