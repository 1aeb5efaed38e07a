import { CodedError } from '../cluster/coded-error.ts';
export type TableErrorCode =
  /** The table does not exist in this region and account. */
  | 'TableMissing'
  | 'AccessDenied'
  | 'Throttled'
  /** Network faults and 5xx. A write may have happened. */
  | 'Unavailable'
  | 'DeadlineExceeded'
  /** An item is larger than the table allows. */
  | 'ItemTooLarge'
  /** An item's schema is newer than this code. */
  | 'SchemaTooNew'
  | 'Corrupt'
  /** A guaranteed update lost every attempt, or its outcome is unclear. The next pass reads again. */
  | 'Contended'
  /** The registration that the caller wanted to replace has changed. */
  | 'ChangedMeanwhile'
  | 'Unexpected';

/** An unexpected error of the table. The message states what failed and what to do next. */
export class TableError extends CodedError<TableErrorCode> {
  override readonly name = 'TableError';
}
