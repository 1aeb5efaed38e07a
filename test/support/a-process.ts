import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { ClusterConnections, type ClusterConnectionsOptions } from '../../lib/runtime/cluster-connections.ts';
import type { ConnectOptions } from '../../lib/runtime/environment.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { afterThisTest } from './after-this-test.ts';

/** Returns the cluster connections of one process, which get their kubeconfigs from `load` and close after the test. Sleeps end at once. */
export function aProcess(
  load: (spec: ClusterSpec) => Promise<ApiServerAccess>,
  overrides: Partial<ClusterConnectionsOptions> = {},
) {
  const clock = { nowMs: 0 };
  const warnings: string[] = [];
  const sleeps: number[] = [];
  let reads = 0;
  // A kubeconfig is kept for 6 hours.
  const { random } = Math;
  Math.random = () => 0.5;
  afterThisTest(() => {
    Math.random = random;
  });
  const clusters = new ClusterConnections({
    nowMs: () => clock.nowMs,
    sleep: async (ms) => void sleeps.push(ms),
    loadKubeconfig: (spec) => {
      reads += 1;
      return load(spec);
    },
    ...overrides,
  });
  afterThisTest(() => clusters.close());
  const connect = (spec = aClusterSpec(), loop: ConnectOptions['loop'] = 'system-namespaces') =>
    clusters.connect(spec, { loop, signal: new AbortController().signal, warn: (text) => warnings.push(text) });
  return { clusters, clock, connect, warnings, sleeps, reads: () => reads };
}
