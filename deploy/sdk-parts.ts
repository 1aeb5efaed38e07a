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

/**
 * The schemas of clients whose error classes are omitted (Systems Manager has 140). An error without a class has the same name
 * and message.
 */
const SCHEMAS = /client-(ssm|eventbridge|secrets-manager)\/dist-es\/schemas\/schemas_0\.js$/;
const ERRORS = /^(?:n0_registry\.registerError\(|export var \w+\$ = \[-3, n0,)[^;]*;$/gm;

export const sdkParts: Plugin = {
  name: 'sdk-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@(aws-sdk|smithy)\// }, ({ path, resolveDir }) => {
      return path in REPLACEMENTS ? { path, namespace: 'sdk-parts', pluginData: resolveDir } : undefined;
    });
    onLoad({ filter: /./, namespace: 'sdk-parts' }, ({ path, pluginData }) => {
      return { contents: REPLACEMENTS[path] ?? '', resolveDir: pluginData };
    });
    onLoad({ filter: SCHEMAS }, async ({ path }) => {
      return { contents: (await readFile(path, 'utf8')).replace(ERRORS, '') };
    });
  },
};
