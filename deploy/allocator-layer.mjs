// Builds the allocator library as a Lambda layer: one module for all functions, instead of a copy in each bundle.
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { keepMap } from './source-maps.mjs';

const root = path.join(import.meta.dirname, '..');
const library = path.join(root, 'lib', 'allocator');

/** The place of the module for functions: Lambda unpacks layers into /opt. */
const LAYER_FILE = 'nodejs/allocator.mjs';
const LAYER_MODULE = `/opt/${LAYER_FILE}`;

/** Builds the only module of the layer into a folder of the project. It has all exports of the library's files. */
export async function buildAllocatorLayer(folder) {
  const files = readdirSync(library).filter((name) => name.endsWith('.ts'));
  const contents = files
    .sort()
    .map((name) => `export * from './${name}';`)
    .join('\n');
  // The file is removed first, because an existing file would keep its mode.
  rmSync(path.join(root, folder), { recursive: true, force: true });
  const outfile = path.join(root, folder, LAYER_FILE);
  await build({
    stdin: { contents, resolveDir: library, sourcefile: 'allocator.ts' },
    outfile,
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    mainFields: ['module', 'main'],
    sourcemap: 'external',
    sourcesContent: false,
    logLevel: 'warning',
  });
  keepMap(outfile, LAYER_FILE);
}

/** An esbuild plugin that leaves imports of `lib/allocator` to the layer. */
export const allocatorFromLayer = {
  name: 'allocator-from-layer',
  setup({ onResolve }) {
    onResolve({ filter: /\/allocator\/[\w-]+\.ts$/ }, ({ path: specifier, resolveDir }) => {
      const inLibrary = path.dirname(path.resolve(resolveDir, specifier)) === library;
      return inLibrary ? { path: LAYER_MODULE, external: true } : undefined;
    });
  },
};
