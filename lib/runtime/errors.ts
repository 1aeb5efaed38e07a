import * as z from 'zod/mini';
import { CodedError } from '../cluster/values.ts';

export type DispatchErrorCode =
  | 'BadEvent'
  /** An environment variable is missing or invalid. */
  | 'BadEnvironment'
  | 'NotRegistered'
  /** A pass was abandoned because its time, or the function's, was over. */
  | 'DeadlineExceeded';

export class DispatchError extends CodedError<DispatchErrorCode> {
  override readonly name = 'DispatchError';
}

export const clusterName = z.string().check(z.regex(/^[a-z0-9-]{1,63}$/, 'is not the name of a cluster'));
