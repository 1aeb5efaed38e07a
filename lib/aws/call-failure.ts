import { isNativeError } from 'node:util/types';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';

const DENIED = new Set(['AccessDeniedException', 'AccessDenied']);
const THROTTLED = new Set(['ThrottlingException', 'Throttling', 'TooManyRequestsException', 'RequestLimitExceeded']);

/** Their messages may contain parts of the request's signature, and are never passed on. */
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

/**
 * Returns the error for a failed call to AWS that the caller has no better words for.
 * @param call its action, with resource and region
 */
export function callFailure(
  call: string,
  service: string,
  region: string,
  error: unknown,
  signal?: AbortSignal,
): ClusterError {
  const name = nameOfError(error);
  if (NOT_AUTHENTICATED.has(name)) {
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
  return badStoredKubeconfig(`${call} was refused (${name}): ${textOfError(error)}`, error);
}

/** Returns the usual resolution in a VPC, which has no path to AWS by default. */
function routeRemedy(service: string, region: string): string {
  return (
    `In a VPC, add an interface endpoint for com.amazonaws.${region}.${service} whose security group ` +
    'allows the functions on port 443, or a NAT gateway. The next pass tries again.'
  );
}

export function badStoredKubeconfig(message: string, cause?: unknown): ClusterError {
  return new ClusterError('BadKubeconfig', message, cause === undefined ? undefined : { cause });
}

export function isDenied(error: unknown): boolean {
  return DENIED.has(nameOfError(error));
}

export function nameOfError(error: unknown): string {
  return isNativeError(error) ? error.name : 'unknown error';
}

export function textOfError(error: unknown): string {
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
