// Bundles kbctl. For the npm package: dist/kbctl.mjs and its parts, because Node does not strip types in installed
// packages; dependencies stay imports. For a release (--whole FILE): one file without local runs.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const root = path.join(import.meta.dirname, '..');

const outdir = path.join(root, 'dist');
const [, , option, file] = process.argv;

const common = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.19',
  logLevel: 'warning',
};

/** Replaces local runs by an error, because their embedded table and API server cannot be bundled. */
const withoutLocalRuns = {
  name: 'without-local-runs',
  setup({ onLoad }) {
    const reason =
      'This file has "kbctl run" only with --table: for a local run, use the repository (docs/installing.md).';
    const contents = `export function run() { throw Object.assign(new Error(${JSON.stringify(reason)}), { exitCode: 2 }); }`;
    onLoad({ filter: /\/local\/run\.ts$/ }, () => ({ contents, loader: 'js' }));
  },
};

/** This check runs before the bundle, because an old Node would fail in the bundle with a misleading error. */
const nodeCheck = `if (process.versions.node.localeCompare('22.19', 'en', { numeric: true }) < 0) {
  console.error('kbctl needs Node.js 22.19 or later and this is ' + process.version + ': install a later one.');
  process.exit(1);
}`;

if (option === '--whole') {
  await build({
    ...common,
    entryPoints: [path.join(root, 'cli/main.ts')],
    outfile: file,
    minify: true,
    mainFields: ['module', 'main'],
    plugins: [withoutLocalRuns],
    banner: {
      js: `${nodeCheck} import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
    },
  });
} else {
  rmSync(outdir, { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: { kbctl: path.join(root, 'cli/main.ts') },
    outdir,
    outExtension: { '.js': '.mjs' },
    // Each command stays in its own file: otherwise every command would load all packages.
    splitting: true,
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
  });
}
