import path from 'node:path';
import { webIdentityAccess } from '../kubernetes/credentials.ts';
import {
  type ApiServerAccess,
  type KubeconfigOptions,
  loadKubeconfigFile,
  parseKubeconfig,
} from '../kubernetes/kubeconfig.ts';
import type { ClusterSpec, KubeconfigSpec } from '../spec/cluster-spec.ts';

export type StoredKubeconfig = Extract<KubeconfigSpec, { readonly secretsManager: string } | { readonly ssm: string }>;

export interface KubeconfigSources {
  /** Reads a kubeconfig that is stored in AWS. Throws a `ClusterError`. */
  readonly read: (stored: StoredKubeconfig, signal: AbortSignal) => Promise<string>;
  /** Returns a token of this process's IAM role for an audience. Throws a `ClusterError`. */
  readonly requestToken: (audience: string) => Promise<string>;
}

/** Returns the store and the name of a kubeconfig, its description for messages, and the IAM action that reads it. */
export function placeOf(stored: StoredKubeconfig) {
  if ('ssm' in stored) {
    const { ssm: name } = stored;
    return { store: 'ssm', name, what: `parameter ${name}`, action: 'ssm:GetParameter' } as const;
  }
  const { secretsManager: name } = stored;
  return { store: 'secretsManager', name, what: `secret ${name}`, action: 'secretsmanager:GetSecretValue' } as const;
}

/** Reads a cluster's kubeconfig, without a cache. Throws a `ClusterError`. */
export type LoadKubeconfig = (spec: ClusterSpec, signal: AbortSignal) => Promise<ApiServerAccess>;

/**
 * Returns a reader of kubeconfigs. The path of a file is relative to `folder`. Only kubeconfigs in files may use plugins, and
 * only if `runPlugin` is set.
 */
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
    const options = { refuseLocal, context: kubeconfig.context };
    if ('file' in kubeconfig) {
      return loadKubeconfigFile(path.resolve(folder, kubeconfig.file), { ...options, ...plugins });
    }
    const text = await read(kubeconfig, signal);
    return parseKubeconfig(text, `in ${placeOf(kubeconfig).what}`, options);
  };
}

/** Returns whether this process is a Lambda function, which must not connect to local addresses. Other processes may. */
export function isLambda(variables: Readonly<Record<string, string | undefined>>): boolean {
  return variables['AWS_LAMBDA_RUNTIME_API'] !== undefined;
}
