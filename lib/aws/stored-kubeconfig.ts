import { isNativeError } from 'node:util/types';
import type { KubeconfigSpec } from '../cluster/cluster-spec.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';

export type StoredKubeconfig = Extract<KubeconfigSpec, { readonly secretsManager: string } | { readonly ssm: string }>;

export interface StoreWords {
  /** `secret kube-bootstrap-controller/dev/prod-eu-1`, `parameter /kube-bootstrap-controller/dev/prod-eu-1`. */
  readonly what: string;
  /** As IAM names what reads it. */
  readonly action: 'secretsmanager:GetSecretValue' | 'ssm:GetParameter';
  /** As in the name of its VPC endpoint. */
  readonly service: 'secretsmanager' | 'ssm';
  /** Its field of the cluster spec. */
  readonly field: 'kubeconfig.secretsManager' | 'kubeconfig.ssm';
}

export function nameOf(stored: StoredKubeconfig): string {
  return 'ssm' in stored ? stored.ssm : stored.secretsManager;
}

export function wordsOf(stored: StoredKubeconfig): StoreWords {
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

/** Returns the region of an ARN. A name is looked up where the function runs. */
export function regionIn(stored: StoredKubeconfig): string | undefined {
  const [scheme, , , region] = nameOf(stored).split(':');
  return scheme === 'arn' ? region : undefined;
}

const MISSING = new Set(['ResourceNotFoundException', 'ParameterNotFound', 'ParameterVersionNotFound']);
const DENIED = new Set(['AccessDeniedException', 'AccessDenied']);
const KEY_REFUSED = new Set(['DecryptionFailure', 'InvalidKeyId', 'KMSAccessDeniedException']);
const THROTTLED = new Set(['ThrottlingException', 'Throttling', 'TooManyRequestsException', 'RequestLimitExceeded']);

/** Their messages may carry parts of the request's signature, and are never passed on. */
const NOT_AUTHENTICATED = new Set([
  'CredentialsProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'IncompleteSignature',
  'IncompleteSignatureException',
  'InvalidClientTokenId',
  'InvalidSignatureException',
  'MissingAuthenticationTokenException',
  'SignatureDoesNotMatch',
  'UnrecognizedClientException',
]);

/** The AWS SDK's own words for it add nothing. */
export function noRegion(stored: StoredKubeconfig): ClusterError {
  const { what } = wordsOf(stored);
  return bad(`The kubeconfig in ${what} cannot be read: no AWS region is set. Set AWS_REGION, or name it by its ARN.`);
}

export function noText(stored: StoredKubeconfig, region: string): ClusterError {
  const { what } = wordsOf(stored);
  return bad(`The ${what} in region ${region} is empty. Put a kubeconfig there, as docs/kubeconfig-secret.md says.`);
}

/** What the AWS SDK threw when a secret was read, as a `ClusterError`. It quotes nothing of what is kept there. */
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
    const remedy = `Put the kubeconfig there, as docs/kubeconfig-secret.md says, or correct ${field} in the cluster spec`;
    return bad(`The ${what} was not found in region ${region} (${action}). ${remedy}.`, error);
  }
  if (KEY_REFUSED.has(name) || (DENIED.has(name) && /\bkms\b|ciphertext/i.test(textOf(error)))) {
    return bad(`${call} was denied the key that it is encrypted with. ${keyRemedy(stored)}.`, error);
  }
  if (isDenied(error)) return bad(`${call} was denied. ${readRemedy(stored)}.`, error);
  if (name === 'InvalidRequestException' && /deletion/i.test(textOf(error))) {
    return bad(
      `The ${what} in region ${region} is being deleted. Restore it: aws secretsmanager restore-secret.`,
      error,
    );
  }
  return otherFailure(call, wordsOf(stored).service, region, error, signal);
}

export function assumeFailure(stored: StoredKubeconfig, roleArn: string, region: string, error: unknown): ClusterError {
  const call = `sts:AssumeRole on ${roleArn}, to read ${wordsOf(stored).what},`;
  if (isDenied(error)) {
    const remedy =
      'Name the role in the parameter assumableRoleArns of the stack, and let its trust policy name the roles of the functions';
    return bad(`${call} was denied. ${remedy}.`, error);
  }
  return otherFailure(call, 'sts', region, error);
}

function readRemedy({ roleArn }: StoredKubeconfig): string {
  if (roleArn !== undefined) return `Allow it to the role ${roleArn}`;
  return 'The functions may read what the parameter secretsPrefix of the stack begins: rename it so, or change the parameter';
}

function keyRemedy({ roleArn }: StoredKubeconfig): string {
  if (roleArn !== undefined) return `Allow kms:Decrypt on its key to the role ${roleArn}`;
  return 'Name its key in the parameter kmsKeyArn of the stack, which allows kms:Decrypt on it, and allow it in the key policy';
}

/** Returns the error for any other failure of a call to AWS. @param call with its resource, region and role */
export function otherFailure(
  call: string,
  service: string,
  region: string,
  error: unknown,
  signal?: AbortSignal,
): ClusterError {
  const name = nameOfError(error);
  if (NOT_AUTHENTICATED.has(name)) {
    return bad(`${call} could not be authenticated (${name}). Give this process valid AWS credentials.`);
  }
  if (signal?.aborted) {
    return new ClusterError(
      'DeadlineExceeded',
      `${call} was not answered before the time of the pass ran out. ${routeRemedy(service, region)}`,
    );
  }
  if (THROTTLED.has(name) || statusOf(error) === 429) {
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
  return bad(`${call} was refused (${name}): ${textOf(error)}`, error);
}

/** The usual reason in a VPC, where nothing leads to AWS by itself. */
function routeRemedy(service: string, region: string): string {
  return (
    `In a VPC it is reached through an interface endpoint for com.amazonaws.${region}.${service} whose security group ` +
    'admits the functions on port 443, or through a NAT gateway: add one. The next pass tries again.'
  );
}

export function bad(message: string, cause?: unknown): ClusterError {
  return new ClusterError('BadKubeconfig', message, cause === undefined ? undefined : { cause });
}

export function isDenied(error: unknown): boolean {
  return DENIED.has(nameOfError(error));
}

export function nameOfError(error: unknown): string {
  return isNativeError(error) ? error.name : 'unknown error';
}

function textOf(error: unknown): string {
  return isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : '';
}

/** Absent when nothing answered. */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('$metadata' in error)) return undefined;
  const metadata = error.$metadata;
  const status =
    typeof metadata === 'object' && metadata !== null && 'httpStatusCode' in metadata
      ? metadata.httpStatusCode
      : undefined;
  return typeof status === 'number' ? status : undefined;
}
