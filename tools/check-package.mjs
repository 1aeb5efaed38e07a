// Checks the packages of `serverless package`: every bundle is small enough, contains what it should and no copy of the
// allocator library, and starts with the layer.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { readZip, unreadableIn } from './read-zip.ts';

/**
 * The maximum size of a gzipped bundle in KB, without the layer. It is smaller for the functions allocate and admission, which
 * connect to no cluster.
 */
const MOST_KB = 215;
const MOST_KB_OF = { allocate: 115, admission: 130 };
const LAYER_MODULE = 'nodejs/allocator.mjs';
/**
 * Modules that no function may contain. The allocator is in the Lambda layer, client-node runs the plugins of a kubeconfig, and
 * the SDK's nested clients get credentials.
 */
const NOT_IN_A_BUNDLE =
  /node_modules\/(@kubernetes|@aws-sdk\/nested-clients|openid-client|dynalite|classic-level|level|jest|fast-check)\/|\/(local|test|cli|lib\/allocator)\//;

const root = path.join(import.meta.dirname, '..');
const functions = readdirSync(path.join(root, 'functions')).map((file) => path.basename(file, '.ts'));
let faults = 0;

const layer = packaged('allocator').get(LAYER_MODULE);
if (layer === undefined) throw new Error(`The layer has no ${LAYER_MODULE}: look at deploy/allocator-layer.mjs.`);
console.log(`layer: ${gzipped(layer)} KB gzipped`);

for (const name of functions) {
  const files = packaged(name);
  const bundle = files.get(`functions/${name}.mjs`);
  if (bundle === undefined) {
    fault(name, `has no bundle, but ${[...files.keys()].join(', ')}`);
    continue;
  }
  const map = readFileSync(path.join(root, '.cache', 'maps', 'functions', `${name}.mjs.map`), 'utf8');
  const kilobytes = gzipped(bundle);
  const most = MOST_KB_OF[name] ?? MOST_KB;
  if (kilobytes > most) fault(name, `is ${kilobytes} KB gzipped; ${most} KB is the most`);
  for (const source of JSON.parse(map).sources) {
    if (NOT_IN_A_BUNDLE.test(source)) fault(name, `holds ${source}`);
  }
  // A package must contain only its bundle, and for example not the cluster.yml of a local run.
  if (files.size !== 1) fault(name, `holds ${[...files.keys()].join(', ')}, and not only its bundle`);
  console.log(`${name}: ${kilobytes} KB gzipped, ${start(name, bundle)}`);
}

function packaged(name) {
  const zip = readFileSync(path.join(root, '.serverless', `${name}.zip`));
  for (const file of unreadableIn(zip)) fault(name, `holds ${file} with a mode that Lambda cannot read`);
  return readZip(zip);
}

function gzipped(bytes) {
  return Math.ceil(gzipSync(bytes, { level: 9 }).length / 1024);
}

/**
 * Loads a bundle in an empty folder and runs its handler. The handler must load, and then fail only because environment variables
 * are missing.
 */
function start(name, bundle) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bundle-'));
  try {
    writeFileSync(path.join(folder, 'bundle.mjs'), bundle);
    mkdirSync(path.join(folder, path.dirname(LAYER_MODULE)));
    writeFileSync(path.join(folder, LAYER_MODULE), layer);
    const program = `
      const { handler } = await import('./bundle.mjs');
      const ready = process.uptime();
      const answer = handler.length > 2 ? 'takes a callback' : await handler({}, {}).catch(({ code }) => code);
      console.log(JSON.stringify({ answer, ready }));`;
    const hook = pathToFileURL(path.join(import.meta.dirname, 'layers-from.mjs')).href;
    const args = ['--import', hook, '--input-type=module', '--eval', program];
    const env = { LAYERS_FROM: folder };
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });
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
