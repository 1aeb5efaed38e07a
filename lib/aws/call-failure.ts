import { isNativeError } from 'node:util/types';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';
import { isNotAuthenticated, isThrottled, nameOfError, statusOf } from './sdk-errors.ts';

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

export function textOfError(error: unknown): string {
  return isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : '';
}
