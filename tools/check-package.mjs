// Checks what `serverless package` made: every function's bundle is small enough, holds what belongs there, and starts.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { readZip } from './read-zip.mjs';

const MOST_KB = 600;
/** Needed on a developer's machine alone. */
const NEVER_DEPLOYED = /node_modules\/(dynalite|classic-level|level|jest|fast-check)\/|\/(local|test|cli)\//;

const root = path.join(import.meta.dirname, '..');
const functions = readdirSync(path.join(root, 'functions')).map((file) => path.basename(file, '.ts'));
let faults = 0;

for (const name of functions) {
  const files = readZip(readFileSync(path.join(root, '.serverless', `${name}.zip`)));
  const bundle = files.get(`functions/${name}.mjs`);
  const map = files.get(`functions/${name}.mjs.map`);
  if (bundle === undefined || map === undefined) {
    fault(name, `has no bundle with its map, but ${[...files.keys()].join(', ')}`);
    continue;
  }
  const kilobytes = Math.ceil(gzipSync(bundle, { level: 9 }).length / 1024);
  if (kilobytes > MOST_KB) fault(name, `is ${kilobytes} KB gzipped; ${MOST_KB} is the most`);
  for (const source of JSON.parse(map.toString()).sources) {
    if (NEVER_DEPLOYED.test(source)) fault(name, `holds ${source}`);
  }
  console.log(`${name}: ${kilobytes} KB gzipped, ${start(name, bundle)}`);
}

/** Runs the handler in a bare folder, where it must get as far as to miss its environment. */
function start(name, bundle) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bundle-'));
  try {
    writeFileSync(path.join(folder, 'bundle.mjs'), bundle);
    const program = `
      const { handler } = await import('./bundle.mjs');
      const ready = process.uptime();
      const answer = handler.length > 2 ? 'takes a callback' : await handler({}, {}).catch(({ code }) => code);
      console.log(JSON.stringify({ answer, ready }));`;
    const args = ['--input-type=module', '--eval', program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env: {}, encoding: 'utf8' });
    const { answer, ready } = stdout === '' ? { answer: stderr, ready: 0 } : JSON.parse(stdout);
    if (answer !== 'BadEnvironment') fault(name, `does not start: ${answer}`);
    return `started in ${Math.round(ready * 1000)} ms`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function fault(name, what) {
  faults += 1;
  console.error(`${name} ${what}`);
}

if (functions.length === 0) fault('functions/', 'is empty');
process.exit(faults === 0 ? 0 : 1);
