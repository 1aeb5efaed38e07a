import type { ReadKubeconfig } from '../lib/aws/read-kubeconfig.ts';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { kubeconfigLoader, type LoadKubeconfig } from '../lib/runtime/load-kubeconfig.ts';

/** The cluster that was started, and the way to it that was named then. */
export interface StartedCluster {
  readonly spec: Pick<ClusterSpec, 'name'>;
  readonly loadKubeconfig: LoadKubeconfig;
}

/**
 * The ways to all clusters of a local table: to the one that was started as it was named, and to those that were applied
 * beside it as their own specs say, with files looked for from the working directory on. Those are found in the table,
 * where another writer may have put them: no credential plugin runs for them.
 */
export function kubeconfigOfEach({ spec: { name }, loadKubeconfig }: StartedCluster): LoadKubeconfig {
  const ofOthers = kubeconfigLoader('.', readStored());
  return (spec, signal) => (spec.name === name ? loadKubeconfig(spec, signal) : ofOthers(spec, signal));
}

/** The SDKs of AWS are loaded for a kubeconfig that is kept there alone. */
function readStored(): ReadKubeconfig {
  let reader: Promise<ReadKubeconfig> | undefined;
  return async (stored, signal) => {
    reader ??= import('../lib/aws/read-kubeconfig.ts').then(({ kubeconfigReader }) => kubeconfigReader());
    return (await reader)(stored, signal);
  };
}
