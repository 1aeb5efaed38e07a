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
