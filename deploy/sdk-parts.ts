import { readFile } from 'node:fs/promises';
import type { Plugin } from 'esbuild';

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

export const sdkParts: Plugin = {
  name: 'sdk-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@(aws-sdk|smithy)\// }, ({ path, resolveDir }) => {
      return path in REPLACEMENTS ? { path, namespace: 'sdk-parts', pluginData: resolveDir } : undefined;
    });
    onLoad({ filter: /./, namespace: 'sdk-parts' }, ({ path, pluginData }) => {
      return { contents: REPLACEMENTS[path] ?? '', resolveDir: pluginData };
    });
    // Omits the classes of errors (Systems Manager has 140, EventBridge 14). An error without one has the same name and message.
    onLoad({ filter: /client-(ssm|eventbridge)\/dist-es\/schemas\/schemas_0\.js$/ }, async ({ path }) => {
      return { contents: (await readFile(path, 'utf8')).replace(/^n0_registry\.registerError\(.*$/gm, '') };
    });
  },
};
