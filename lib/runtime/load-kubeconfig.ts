import path from 'node:path';
import type { KubeconfigSources } from '../aws/read-kubeconfig.ts';
import { wordsOf } from '../aws/stored-kubeconfig.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import {
  type ApiServerAccess,
  type KubeconfigOptions,
  loadKubeconfigFile,
  parseKubeconfig,
} from '../kubernetes/kubeconfig.ts';
import { webIdentityAccess } from '../kubernetes/web-identity.ts';

/** Reads a cluster's kubeconfig again each time. Throws a `ClusterError`. */
export type LoadKubeconfig = (spec: ClusterSpec, signal: AbortSignal) => Promise<ApiServerAccess>;

/** Reads from the source in the spec. Paths of files are relative to `folder`; only files may name plugins, where one can run. */
export function kubeconfigLoader(
  folder: string,
  { read, requestToken }: KubeconfigSources,
  { refuseLocal = false, ...plugins }: Pick<KubeconfigOptions, 'runPlugin' | 'refuseLocal'> = {},
): LoadKubeconfig {
  return async ({ kubeconfig }, signal) => {
    if ('webIdentity' in kubeconfig) {
      const { webIdentity } = kubeconfig;
      return webIdentityAccess(webIdentity, () => requestToken(webIdentity.server), { refuseLocal });
    }
    const options = { refuseLocal, ...(kubeconfig.context !== undefined && { context: kubeconfig.context }) };
    if ('file' in kubeconfig) {
      return loadKubeconfigFile(path.resolve(folder, kubeconfig.file), { ...options, ...plugins });
    }
    const text = await read(kubeconfig, signal);
    return parseKubeconfig(text, `in ${wordsOf(kubeconfig).what}`, options);
  };
}

/** Returns true in a Lambda function. Elsewhere a kubeconfig may lead to an API server of this machine. */
export function isLambda(variables: Readonly<Record<string, string | undefined>>): boolean {
  return variables['AWS_LAMBDA_RUNTIME_API'] !== undefined;
}

/** Returns a text such as `file /etc/kube/config` or `secret kube-bootstrap-controller/dev/prod-eu-1`. */
export function kubeconfigPlace({ kubeconfig }: ClusterSpec): string {
  if ('webIdentity' in kubeconfig) return 'webIdentity in the cluster spec';
  return 'file' in kubeconfig ? `file ${kubeconfig.file}` : wordsOf(kubeconfig).what;
}
