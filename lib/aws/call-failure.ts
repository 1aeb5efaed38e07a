import { isNativeError } from 'node:util/types';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';
import { httpStatusOf, isDenied, isNotAuthenticated, isThrottled, nameOfError } from './sdk.ts';

export interface FailedCall {
  /** The action with its resource and region. */
  readonly call: string;
  /** The name of the service in VPC endpoints. */
  readonly service: string;
  readonly region: string;
  readonly ifDenied: string;
}

export function callFailure(
  { call, service, region, ifDenied }: FailedCall,
  error: unknown,
  signal?: AbortSignal,
): ClusterError {
  const name = nameOfError(error);
  if (isDenied(error)) return badConfiguration(`${call} was denied. ${ifDenied}.`, error);
  if (isNotAuthenticated(error)) {
    return badConfiguration(`${call} could not be authenticated (${name}). Give this process valid AWS credentials.`);
  }
  // A VPC has no network path to AWS by default.
  const path =
    `In a VPC, add an interface endpoint for com.amazonaws.${region}.${service} whose security group ` +
    'allows the functions on port 443, or a NAT gateway. The next pass tries again.';
  if (signal?.aborted) {
    return new ClusterError('DeadlineExceeded', `${call} was not answered before the deadline of the pass. ${path}`);
  }
  const cause = { cause: error };
  if (isThrottled(error)) {
    return new ClusterError('Throttled', `${call} was throttled (${name}). The next pass tries again.`, cause);
  }
  const status = httpStatusOf(error);
  if (status === undefined) {
    return new ClusterError('Unavailable', `${call} got no answer (${describeNetworkError(error)}). ${path}`, cause);
  }
  if (status >= 500) {
    return new ClusterError('Unavailable', `${call} failed (${name}). The next pass tries again.`, cause);
  }
  return badConfiguration(`${call} was refused (${name}): ${textOfError(error)}`, error);
}

/** Returns the error for a spec, stack or account that must be corrected. */
export function badConfiguration(message: string, cause?: unknown): ClusterError {
  return new ClusterError('BadKubeconfig', message, { cause });
}

export function textOfError(error: unknown): string {
  return isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : '';
}
