import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { parse } from 'yaml';
import { httpByProperty, sdkParts } from '../../deploy/esbuild-plugins.ts';
import { readInRepository } from './repository.ts';

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
  const { minify, format, platform, target, mainFields, banner } = parse(readInRepository('serverless.yml')).custom
    .esbuild;
  const options = { minify, format, platform, target, mainFields, banner };
  const outExtension = { '.js': '.mjs' };
  await build({ entryPoints: [...entryPoints], outdir, outExtension, bundle: true, ...options, plugins: [...plugins] });
}

/** Returns the options that give Node the heap sizes of the Lambda runtime. */
export function heapOptions(memoryMb: number): string {
  return `--max-old-space-size=${Math.floor(memoryMb * 0.9)} --max-semi-space-size=${Math.floor(memoryMb * 0.05)}`;
}
