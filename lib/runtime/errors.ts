import * as z from 'zod/mini';
import { CodedError } from '../cluster/coded-error.ts';

export type DispatchErrorCode =
  /** The event is of no known kind. */
  | 'BadEvent'
  /** An environment variable is missing or makes no sense. */
  | 'BadEnvironment'
  /** The requested cluster is not registered. */
  | 'NotRegistered'
  /** A pass was given up because its time, or the function's, was over. */
  | 'DeadlineExceeded';

export class DispatchError extends CodedError<DispatchErrorCode> {
  override readonly name = 'DispatchError';
}

type ParseError = Pick<z.core.$ZodError, 'issues'>;

export const clusterName = z.string().check(z.regex(/^[a-z0-9-]{1,63}$/, 'is not the name of a cluster'));

/** What is wrong with an event, in one sentence. */
export function eventFaults({ issues }: ParseError): string {
  return issues.map(faultOf).join('; ');
}

function faultOf(issue: z.core.$ZodIssue): string {
  const at = issue.path.length === 0 ? 'the event' : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const keys = `${issue.keys.map((key) => `"${key}"`).join(', ')} is not known`;
    return issue.path.length === 0 ? keys : `${at}: ${keys}`;
  }
  if (issue.code === 'invalid_type') return `${at} is not of type ${issue.expected}`;
  return `${at} ${issue.message}`;
}
