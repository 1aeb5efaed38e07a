import { isNativeError } from 'node:util/types';
import { ClusterError, type ClusterErrorCode } from '../kubernetes/cluster-port.ts';
import { describeNetworkError } from '../kubernetes/network-fault.ts';
import { httpStatusOf, isDenied, isNotAuthenticated, isThrottled, nameOfError } from './sdk.ts';

interface FailedCall {
  readonly call: string;
  /** The AWS service, as it is named in VPC endpoints, such as `sts`. */
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
  const failed = (code: ClusterErrorCode, problem: string) => {
    return new ClusterError(code, `${call} ${problem}`, { cause: error });
  };
  if (isDenied(error)) return failed('BadKubeconfig', `was denied. ${ifDenied}.`);
  if (isNotAuthenticated(error)) {
    return badConfiguration(`${call} could not be authenticated (${name}). Give this process valid AWS credentials.`);
  }
  // A VPC has no network path to AWS by default.
  const path =
    `In a VPC, add an interface endpoint for com.amazonaws.${region}.${service} whose security group ` +
    'allows the functions on port 443, or a NAT gateway. The next pass tries again.';
  if (signal?.aborted) return failed('DeadlineExceeded', `was not answered before the deadline of the pass. ${path}`);
  if (isThrottled(error)) return failed('Throttled', `was throttled (${name}). The next pass tries again.`);
  const status = httpStatusOf(error);
  if (status === undefined) return failed('Unavailable', `got no answer (${describeNetworkError(error)}). ${path}`);
  if (status >= 500) return failed('Unavailable', `failed (${name}). The next pass tries again.`);
  return failed('BadKubeconfig', `was refused (${name}): ${textOfError(error)}`);
}

/** Returns the error for a spec, stack or account that must be corrected. */
export function badConfiguration(message: string, cause?: unknown): ClusterError {
  return new ClusterError('BadKubeconfig', message, { cause });
}

export function textOfError(error: unknown): string {
  return isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : '';
}
