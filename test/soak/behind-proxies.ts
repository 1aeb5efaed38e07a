import { writeFileSync } from 'node:fs';
import type { PickIndex } from '../../lib/allocator/range-allocator.ts';
import { startChaosProxy } from '../support/chaos-proxy.ts';
import type { KubeApiserver } from '../support/control-plane.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { startHandlers } from '../support/handlers.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

/**
 * Starts handlers behind proxies that break connections to the API server and requests to the table.
 * @param addresses the addresses of API servers. Each has a proxy to the one that runs, and the kubeconfig uses the first proxy
 */
export async function startBehindProxies(apiserver: KubeApiserver, addresses: readonly string[], pick: PickIndex) {
  const proxies = await Promise.all(addresses.map(() => startChaosProxy(apiserver.port, pick)));
  const urls = proxies.map(({ port }) => `https://127.0.0.1:${port}`);
  const { kubeconfigFile, ca, token } = apiserver;
  writeFileSync(kubeconfigFile, kubeconfigTo(urls[0] ?? '', { ca, user: { token } }));
  let tableProxy = {} as FaultProxy;
  const handlers = await startHandlers({
    kubeconfigFile,
    tableThrough: async (endpoint) => {
      tableProxy = await startFaultProxy(endpoint);
      return tableProxy.endpoint;
    },
    spec: {
      allocator: 'table',
      serviceClusterIPRange: '10.0.0.0/24',
      apiServers: addresses.map((address, at) => ({ address, probe: { url: `${urls[at]}/readyz` } })),
      service: { securePort: apiserver.port },
    },
  });
  const close = async () => {
    await handlers.close();
    for (const { close } of [...proxies, tableProxy]) await close();
  };
  return { proxies, tableProxy, handlers, close };
}
