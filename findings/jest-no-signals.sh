#!/usr/bin/env bash
# A test of jest 30.5.2 never receives a signal: process in a test is a copy, and a listener on it stays silent, although process.kill and
# process.pid work. A handler of SIGTERM can thus be tested only in a child process. The same lines outside of jest receive the signal.
# Seen on 2026-11-28:
#   in a program: true
#   in a test of jest: false
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts jest@30.5.2
cat >signal.js <<'JS'
const { setTimeout: wait } = require('node:timers/promises');

exports.isReceived = async (process) => {
  let isReceived = false;
  process.once('SIGWINCH', () => (isReceived = true));
  process.kill(process.pid, 'SIGWINCH');
  for (let tries = 0; tries < 20 && !isReceived; tries++) await wait(50);
  return isReceived;
};
JS
cat >signal.test.js <<'JS'
const { writeFileSync } = require('node:fs');

test('receives a signal', async () => {
  writeFileSync('in-jest', `in a test of jest: ${await require('./signal.js').isReceived(process)}\n`);
});
JS
node -e "require('./signal.js').isReceived(process).then((is) => console.log('in a program:', is))" >seen
npx jest --rootDir . --silent >/dev/null 2>&1
cat in-jest >>seen
cat seen
diff - seen <<'SEEN'
in a program: true
in a test of jest: false
SEEN
