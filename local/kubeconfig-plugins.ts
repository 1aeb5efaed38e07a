import type { RequestOptions } from 'node:https';
import type { RunPlugin } from '../lib/kubernetes/kubeconfig.ts';

/** Runs a credential plugin with `@kubernetes/client-node`. The Lambda functions do not load this package. */
export const runPlugin: RunPlugin = (server, { exec, 'auth-provider': authProvider }) => {
  const named = import('@kubernetes/client-node').then(({ KubeConfig }) => {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'cluster', server }],
      users: [{ name: 'user', exec, authProvider }],
      contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
      currentContext: 'context',
    });
    return config;
  });
  return async () => {
    const options: RequestOptions = {};
    await (await named).applyToHTTPSOptions(options);
    const { cert, key, headers } = options;
    const [, token] = String(Object(headers)['Authorization'] ?? '').split('Bearer ');
    return {
      ...(token !== undefined && { token }),
      ...(isPem(cert) && { cert }),
      ...(isPem(key) && { key }),
    };
  };
};

function isPem(value: unknown): value is string | Buffer {
  return (typeof value === 'string' && value !== '') || Buffer.isBuffer(value);
}
