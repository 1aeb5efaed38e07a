// Bundles kbctl to dist/kbctl.mjs for the npm package: Node strips no types of what is installed. Packages stay imports,
// as dependencies of the package.
import path from 'node:path';
import { build } from 'esbuild';

const root = path.join(import.meta.dirname, '..');

await build({
  entryPoints: [path.join(root, 'cli/main.ts')],
  outfile: path.join(root, 'dist/kbctl.mjs'),
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node22.19',
  // Names and lines for a stack trace; the sources themselves are where the package comes from.
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
});
