import path from 'node:path';
import { isNativeError } from 'node:util/types';
import type { ClusterSpec, KubeconfigSpec } from '../cluster/cluster-spec.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { webIdentityAccess } from '../kubernetes/credentials.ts';
import {
  type ApiServerAccess,
  type KubeconfigOptions,
  loadKubeconfigFile,
  parseKubeconfig,
} from '../kubernetes/kubeconfig.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';
import { isDenied, isNotAuthenticated, isThrottled, nameOfError, statusOf } from './sdk.ts';

export type StoredKubeconfig = Extract<KubeconfigSpec, { readonly secretsManager: string } | { readonly ssm: string }>;

/** Reads a kubeconfig that is stored in AWS. Throws a `ClusterError`. */
export type ReadKubeconfig = (stored: StoredKubeconfig, signal: AbortSignal) => Promise<string>;

/** Returns a token of this process's IAM role for an audience. Throws a `ClusterError`. */
export type RequestToken = (audience: string) => Promise<string>;

export interface KubeconfigSources {
  readonly read: ReadKubeconfig;
  readonly requestToken: RequestToken;
}

export function nameOf(stored: StoredKubeconfig): string {
  return 'ssm' in stored ? stored.ssm : stored.secretsManager;
}

/**
 * Returns a stored kubeconfig's name for messages, the IAM action that reads it, its service in VPC endpoints, and its
 * field in the spec.
 */
function wordsOf(stored: StoredKubeconfig) {
  if ('ssm' in stored) {
    return { what: `parameter ${stored.ssm}`, action: 'ssm:GetParameter', service: 'ssm', field: 'kubeconfig.ssm' };
  }
  return {
    what: `secret ${stored.secretsManager}`,
    action: 'secretsmanager:GetSecretValue',
    service: 'secretsmanager',
    field: 'kubeconfig.secretsManager',
  };
}

/** Returns the region of an ARN; `undefined` for a name, which is looked up in the region of this process. */
export function regionIn(stored: StoredKubeconfig): string | undefined {
  const [scheme, , , region] = nameOf(stored).split(':');
  return scheme === 'arn' ? region : undefined;
}

const MISSING = new Set(['ResourceNotFoundException', 'ParameterNotFound', 'ParameterVersionNotFound']);
const KEY_REFUSED = new Set(['DecryptionFailure', 'InvalidKeyId', 'KMSAccessDeniedException']);

/** Returns the error for a missing region. The AWS SDK's own message has no more information. */
export function noRegion(stored: StoredKubeconfig): ClusterError {
  const { what } = wordsOf(stored);
  return badStoredKubeconfig(
    `The kubeconfig in ${what} cannot be read: no AWS region is set. Set AWS_REGION, or name it by its ARN.`,
  );
}

export function noText(stored: StoredKubeconfig, region: string): ClusterError {
  const { what } = wordsOf(stored);
  return badStoredKubeconfig(
    `The ${what} in region ${region} is empty. Put a kubeconfig there (docs/kubeconfig-secret.md).`,
  );
}

/** Returns an error of the AWS SDK as a `ClusterError`. It quotes no part of the secret. */
export function readFailure(
  stored: StoredKubeconfig,
  region: string,
  error: unknown,
  signal: AbortSignal,
): ClusterError {
  const { what, action, field } = wordsOf(stored);
  const name = nameOfError(error);
  const call = `${action} on ${what} in region ${region}`;
  if (MISSING.has(name)) {
    const remedy = `Put the kubeconfig there (docs/kubeconfig-secret.md), or correct ${field} in the cluster spec`;
    return badStoredKubeconfig(`The ${what} was not found in region ${region} (${action}). ${remedy}.`, error);
  }
  if (KEY_REFUSED.has(name) || (isDenied(error) && /\bkms\b|ciphertext/i.test(textOfError(error)))) {
    return badStoredKubeconfig(`${call} was denied the use of its encryption key. ${keyRemedy(stored)}.`, error);
  }
  if (isDenied(error)) return badStoredKubeconfig(`${call} was denied. ${readRemedy(stored)}.`, error);
  if (name === 'InvalidRequestException' && /deletion/i.test(textOfError(error))) {
    return badStoredKubeconfig(
      `The ${what} in region ${region} is being deleted. Restore it: aws secretsmanager restore-secret.`,
      error,
    );
  }
  return callFailure(call, wordsOf(stored).service, region, error, signal);
}

export function assumeFailure(stored: StoredKubeconfig, roleArn: string, region: string, error: unknown): ClusterError {
  const call = `sts:AssumeRole on ${roleArn}, to read ${wordsOf(stored).what},`;
  if (isDenied(error)) {
    const remedy =
      'Add the role to the parameter assumableRoleArns or assumableOrgRole of the stack, and the roles of the functions to its trust policy';
    return badStoredKubeconfig(`${call} was denied. ${remedy}.`, error);
  }
  return callFailure(call, 'sts', region, error);
}

function readRemedy({ roleArn }: StoredKubeconfig): string {
  if (roleArn !== undefined) return `Allow it to the role ${roleArn}`;
  return 'The functions may read only names that begin with the parameter secretsPrefix of the stack: rename it, or change the parameter';
}

function keyRemedy({ roleArn }: StoredKubeconfig): string {
  if (roleArn !== undefined) return `Allow kms:Decrypt on its key to the role ${roleArn}`;
  return 'Set the parameter kmsKeyArn of the stack to its key, which allows kms:Decrypt, and allow it in the key policy';
}

/**
 * Returns the general error for a failed call to AWS, for callers without a more specific message.
 * @param call the action, with resource and region
 */
export function callFailure(
  call: string,
  service: string,
  region: string,
  error: unknown,
  signal?: AbortSignal,
): ClusterError {
  const name = nameOfError(error);
  if (isNotAuthenticated(error)) {
    return badStoredKubeconfig(
      `${call} could not be authenticated (${name}). Give this process valid AWS credentials.`,
    );
  }
  if (signal?.aborted) {
    return new ClusterError(
      'DeadlineExceeded',
      `${call} was not answered before the deadline of the pass. ${routeRemedy(service, region)}`,
    );
  }
  if (isThrottled(error)) {
    return new ClusterError('Throttled', `${call} was throttled (${name}). The next pass tries again.`, {
      cause: error,
    });
  }
  if (statusOf(error) === undefined) {
    const message = `${call} got no answer (${describeNetworkError(error)}). ${routeRemedy(service, region)}`;
    return new ClusterError('Unavailable', message, { cause: error });
  }
  if ((statusOf(error) ?? 0) >= 500) {
    return new ClusterError('Unavailable', `${call} failed (${name}). The next pass tries again.`, { cause: error });
  }
  return badStoredKubeconfig(`${call} was refused (${name}): ${textOfError(error)}`, error);
}

/** Returns the usual resolution for a VPC, because a VPC has no network path to AWS by default. */
function routeRemedy(service: string, region: string): string {
  return (
    `In a VPC, add an interface endpoint for com.amazonaws.${region}.${service} whose security group ` +
    'allows the functions on port 443, or a NAT gateway. The next pass tries again.'
  );
}

export function badStoredKubeconfig(message: string, cause?: unknown): ClusterError {
  return new ClusterError('BadKubeconfig', message, cause === undefined ? undefined : { cause });
}

function textOfError(error: unknown): string {
  return isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : '';
}

/** Reads a cluster's kubeconfig, without a cache. Throws a `ClusterError`. */
export type LoadKubeconfig = (spec: ClusterSpec, signal: AbortSignal) => Promise<ApiServerAccess>;

/**
 * Returns a function that reads a kubeconfig from the source in the spec. File paths are relative to `folder`. Only
 * files may name plugins, and only where `runPlugin` is set.
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
