// Bundles the functions, and the allocator library as a Lambda layer: one module for all functions, instead of a copy in each.
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const root = path.join(import.meta.dirname, '..');
const library = path.join(root, 'lib', 'allocator');

/** The place of the module for functions: Lambda unpacks layers into /opt. */
const LAYER_FILE = 'nodejs/allocator.mjs';

/**
 * Builds the only module of the layer into a folder of the project. The module has all exports of the library's files.
 * @param settings the esbuild settings of the functions in serverless.yml
 */
export async function buildAllocatorLayer(folder: string, settings: BuildOptions): Promise<void> {
  const files = readdirSync(library).filter((name) => name.endsWith('.ts'));
  const contents = files.sort().map((name) => `export * from './${name}';`);
  const outfile = path.join(root, folder, LAYER_FILE);
  // The file is removed first, because an existing file would keep its mode.
  rmSync(path.join(root, folder), { recursive: true, force: true });
  await build({
    ...settings,
    stdin: { contents: contents.join('\n'), resolveDir: library, sourcefile: 'allocator.ts' },
    outfile,
    absWorkingDir: root,
  });
  keepMap(outfile, LAYER_FILE);
}

/** Makes imports of `lib/allocator` load the module of the layer, so that no package contains a copy. */
const allocatorFromLayer: Plugin = {
  name: 'allocator-from-layer',
  setup({ onResolve }) {
    onResolve({ filter: /\/allocator\/[\w-]+\.ts$/ }, ({ path: specifier, resolveDir }) => {
      const isInLibrary = path.dirname(path.resolve(resolveDir, specifier)) === library;
      return isInLibrary ? { path: `/opt/${LAYER_FILE}`, external: true } : undefined;
    });
  },
};

/**
 * Reads each export of `node:http` and `node:https` only when the code uses it. An `import` would read all exports, and for some
 * exports Node loads its own undici, which takes a sixth of the CPU time of a start.
 */
export const httpByProperty: Plugin = {
  name: 'http-by-property',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?https?$/ }, (imported) => ({ path: imported.path, namespace: 'by-property' }));
    onLoad({ filter: /./, namespace: 'by-property' }, (imported) => ({
      contents: `module.exports = process.getBuiltinModule('${imported.path}');`,
    }));
  },
};

/**
 * Smaller replacements for parts of the AWS SDK that no function needs: Lambda has credentials in the environment, no
 * function reads event streams, and no function enables the discovery of DynamoDB's endpoints. The SDK loads some of
 * these parts with `import()`, and esbuild keeps every export of a module that such a part uses.
 */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  '@aws-sdk/credential-provider-node': "export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';",
  '@aws-sdk/endpoint-cache': 'export class EndpointCache { getEndpoint() {} }',
  '@smithy/core/event-streams': '',
};

/**
 * Matches the schema files from which error classes are removed (Systems Manager has 140). An error without a class has the same
 * name and message.
 */
const SCHEMAS = /client-(ssm|eventbridge|secrets-manager)\/dist-es\/schemas\/schemas_0\.js$/;
const ERRORS = /^(?:n0_registry\.registerError\(|export var \w+\$ = \[-3, n0,)[^;]*;$/gm;

export const sdkParts: Plugin = {
  name: 'sdk-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@(aws-sdk|smithy)\// }, ({ path: name, resolveDir }) => {
      return name in REPLACEMENTS ? { path: name, namespace: 'sdk-parts', pluginData: resolveDir } : undefined;
    });
    onLoad({ filter: /./, namespace: 'sdk-parts' }, ({ path: name, pluginData: resolveDir }) => {
      return { contents: REPLACEMENTS[name] ?? '', resolveDir };
    });
    onLoad({ filter: SCHEMAS }, async ({ path: file }) => {
      return { contents: (await readFile(file, 'utf8')).replace(ERRORS, '') };
    });
  },
};

/** Keeps source maps for tools/symbolise.mjs, but not in the packages, because they would cost memory in the functions. */
const mapsApart: Plugin = {
  name: 'maps-apart',
  setup({ initialOptions: { outdir = '', entryPoints }, onEnd }) {
    onEnd(({ errors }) => {
      if (errors.length > 0) return;
      for (const entry of entryPoints as readonly string[]) {
        const name = `${path.basename(entry, '.ts')}.mjs`;
        keepMap(path.join(outdir, name), `functions/${name}`);
      }
    });
  },
};

/** Moves a source map out of the package. @param name the name of the bundle in Lambda, such as `functions/doctor.mjs` */
function keepMap(bundle: string, name: string): void {
  const kept = path.join(root, '.cache', 'maps', `${name}.map`);
  mkdirSync(path.dirname(kept), { recursive: true });
  renameSync(`${bundle}.map`, kept);
}

export default [allocatorFromLayer, httpByProperty, sdkParts, mapsApart];
