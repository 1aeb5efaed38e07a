#!/usr/bin/env bash
# test.each of jest 30.5.2 passes a callback in the place of the first value that a row does not have: a function, not undefined. The test then waits
# for a call of it and fails after its timeout, or passes the function to the code under test. An optional last column is enough: each short row has
# to be filled with undefined.
# Seen on 2026-11-29 with a timeout of 500 ms:
#   row a,b: string
#   row c,: undefined
#   row d: function
#   passed: 2, failed: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts jest@30.5.2
cat >run.test.js <<'JS'
const { appendFileSync } = require('node:fs');

const rows = [['a', 'b'], ['c', undefined], ['d']];
let at = 0;
test.each(rows)('%#', (first, second) => {
  appendFileSync('seen', `row ${rows[at++]}: ${typeof second}\n`);
});
JS
npx jest --testTimeout 500 --json --outputFile result.json --silent >output 2>&1 || true
node -p 'const r = require("./result.json"); `passed: ${r.numPassedTests}, failed: ${r.numFailedTests}`' >>seen
cat seen
diff - seen <<'SEEN'
row a,b: string
row c,: undefined
row d: function
passed: 2, failed: 1
SEEN
