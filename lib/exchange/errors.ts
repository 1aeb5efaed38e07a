import type * as z from 'zod/mini';
import { CodedError } from '../cluster/coded-error.ts';

export type ExchangeErrorCode =
  /** Not a format that can be read. */
  | 'UnknownForm'
  /** One of them, of another object. */
  | 'WrongKind'
  /** Truncated, or not valid in its format. */
  | 'Malformed'
  | 'TooLarge'
  /** It marks items that its range does not have. */
  | 'NotInRange'
  /** It is of a range that the cluster does not have. */
  | 'OtherRange'
  /** What the cluster's own API servers allocate is not in this table, here or where the file comes from. */
  | 'NoRecord'
  | 'NotRegistered'
  /** What is stored may not agree with the cluster: no enforcing pass has saved it recently. */
  | 'NotCurrent'
  /** The cluster's ranges were changed during the import. */
  | 'ChangedMeanwhile'
  | 'HoldsFull';

/** An expected refusal to import or to export; returned, not thrown. The message says what to do next. */
export class ExchangeError extends CodedError<ExchangeErrorCode> {
  override readonly name = 'ExchangeError';
}

export function malformed(what: string): ExchangeError {
  return new ExchangeError('Malformed', `The file does not parse: ${what}. Export it again.`);
}

/** Returns the result of `read`, or the `ExchangeError` that it throws. */
export function refusalOr<Result>(read: () => Result): Result | ExchangeError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ExchangeError) return error;
    throw error;
  }
}

const MOST_LISTED = 5;

/** What is wrong with a JSON object, in one sentence. */
export function jsonFaults({ issues }: Pick<z.core.$ZodError, 'issues'>): ExchangeError {
  const listed = issues.slice(0, MOST_LISTED).map(faultOf);
  const more = issues.length > MOST_LISTED ? [`and ${issues.length - MOST_LISTED} more faults`] : [];
  return malformed([...listed, ...more].join('; '));
}

function faultOf(issue: z.core.$ZodIssue): string {
  const at = issue.path.length === 0 ? 'the file' : issue.path.join('.');
  if (issue.code === 'invalid_type') return `${at} is missing or not of type ${issue.expected}`;
  if (issue.code === 'invalid_value') return `${at} is none of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'unrecognized_keys') return `${at} has fields that are not known: ${issue.keys.join(', ')}`;
  return `${at} is not valid`;
}
