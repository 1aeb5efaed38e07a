// Bundles kbctl to dist/kbctl.mjs and what that loads for the npm package: Node strips no types of what is installed. Packages stay imports,
// as dependencies of the package.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const root = path.join(import.meta.dirname, '..');

const outdir = path.join(root, 'dist');

rmSync(outdir, { recursive: true, force: true });
await build({
  entryPoints: { kbctl: path.join(root, 'cli/main.ts') },
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  // What a command imports when it runs stays apart: in one file its packages would be loaded by every command.
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node22.19',
  // Names and lines for a stack trace; the sources themselves are where the package comes from.
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
});
