import path from 'node:path';
import type { ReadKubeconfig } from '../aws/read-kubeconfig.ts';
import { wordsOf } from '../aws/stored-kubeconfig.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import {
  type ApiServerAccess,
  type KubeconfigOptions,
  loadKubeconfigFile,
  parseKubeconfig,
} from '../kubernetes/kubeconfig.ts';

/** Reads a cluster's kubeconfig anew. Throws a `ClusterError`. */
export type LoadKubeconfig = (spec: ClusterSpec, signal: AbortSignal) => Promise<ApiServerAccess>;

/** From wherever the spec says. Files are looked for from `folder` on, and they alone may name plugins, where one is run. */
export function kubeconfigLoader(
  folder: string,
  read: ReadKubeconfig,
  { refuseLocal = false, ...plugins }: Pick<KubeconfigOptions, 'runPlugin' | 'refuseLocal'> = {},
): LoadKubeconfig {
  return async ({ kubeconfig }, signal) => {
    const options = { refuseLocal, ...(kubeconfig.context !== undefined && { context: kubeconfig.context }) };
    if ('file' in kubeconfig) {
      return loadKubeconfigFile(path.resolve(folder, kubeconfig.file), { ...options, ...plugins });
    }
    const text = await read(kubeconfig, signal);
    return parseKubeconfig(text, `in ${wordsOf(kubeconfig).what}`, options);
  };
}

/** Lambda sets this for every function. Elsewhere an API server of this machine is what a person wants to reach. */
export function isLambda(variables: Readonly<Record<string, string | undefined>>): boolean {
  return variables['AWS_LAMBDA_RUNTIME_API'] !== undefined;
}

/** `file /etc/kube/config`, `secret kube-bootstrap-controller/dev/prod-eu-1`. */
export function kubeconfigPlace({ kubeconfig }: ClusterSpec): string {
  return 'file' in kubeconfig ? `file ${kubeconfig.file}` : wordsOf(kubeconfig).what;
}
