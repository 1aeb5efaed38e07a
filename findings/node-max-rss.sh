#!/usr/bin/env bash
# process.resourceUsage().maxRSS of a child of Node.js 24.21.0 on Linux begins with the peak of its parent: a new process of a parent with 400 MiB
# reports more than 400 MiB, although it uses some 40. The child shares the parent's memory until exec, and Linux counts that as its own. One
# process between the two, such as a shell that waits, avoids it. A figure of a child's memory that a test measures is thus the test's own.
# Seen on 2026-11-28 with Linux 6.18:
#   child of a small process: less than 300 MiB
#   child of a large process: more than 300 MiB
#   child of a shell below it: less than 300 MiB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.mjs <<'JS'
import { execFileSync } from 'node:child_process';

const program = [process.execPath, '-p', 'process.resourceUsage().maxRSS'];
const size = (file, ...args) => (Number(execFileSync(file, args)) > 300 * 1024 ? 'more than 300 MiB' : 'less than 300 MiB');
console.log(`child of a small process: ${size(...program)}`);
const large = Buffer.alloc(400 * 1024 * 1024, 1);
console.log(`child of a large process: ${size(...program)}`);
console.log(`child of a shell below it: ${size('/bin/sh', '-c', '"$@"; true', 'sh', ...program)}`);
if (large.length === 0) throw new Error('The buffer must stay alive until here.');
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
child of a small process: less than 300 MiB
child of a large process: more than 300 MiB
child of a shell below it: less than 300 MiB
SEEN
