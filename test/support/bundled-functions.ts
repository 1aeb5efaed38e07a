import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { httpByProperty } from '../../deploy/http-by-property.ts';
import { sdkParts } from '../../deploy/sdk-parts.ts';

/** Bundles functions into `folder/functions`, as serverless.yml does. */
export async function bundleFunctions(folder: string, names: readonly string[]): Promise<void> {
  await bundle(
    join(folder, 'functions'),
    names.map((name) => `functions/${name}.ts`),
  );
}

/** Bundles modules with the plugins of the functions, unless other plugins are given. */
export async function bundle(
  outdir: string,
  entryPoints: readonly string[],
  plugins: readonly Plugin[] = [httpByProperty, sdkParts],
): Promise<void> {
  await build({
    entryPoints: [...entryPoints],
    outdir,
    outExtension: { '.js': '.mjs' },
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    mainFields: ['module', 'main'],
    plugins: [...plugins],
  });
}

/** Returns the options that give Node the heap sizes of the Lambda runtime. */
export function heapOptions(memoryMb: number): string {
  return `--max-old-space-size=${Math.floor(memoryMb * 0.9)} --max-semi-space-size=${Math.floor(memoryMb * 0.05)}`;
}
