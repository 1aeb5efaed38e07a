import type { Plugin } from 'esbuild';

/**
 * Smaller replacements for parts of the AWS SDK that no function needs: Lambda has credentials in the environment, and no
 * function reads event streams. The SDK loads these parts with `import()`, and esbuild keeps every export of a module that such a
 * part uses.
 */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  '@aws-sdk/credential-provider-node': "export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';",
  '@smithy/core/event-streams': '',
};

export const sdkParts: Plugin = {
  name: 'sdk-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@(aws-sdk|smithy)\// }, ({ path, resolveDir }) => {
      return path in REPLACEMENTS ? { path, namespace: 'sdk-parts', pluginData: resolveDir } : undefined;
    });
    onLoad({ filter: /./, namespace: 'sdk-parts' }, ({ path, pluginData }) => {
      return { contents: REPLACEMENTS[path] ?? '', resolveDir: pluginData };
    });
  },
};
