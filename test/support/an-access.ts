import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';

/** Returns the contents of a kubeconfig without a credential. */
export function anAccess(overrides: Partial<ApiServerAccess> = {}): ApiServerAccess {
  return {
    server: 'https://10.0.0.1:6443',
    basePath: '',
    source: 'kubeconfig of the test',
    context: 'demo',
    ignored: [],
    tls: () => ({ rejectUnauthorized: true }),
    authHeaders: async () => ({}),
    ...overrides,
  };
}
