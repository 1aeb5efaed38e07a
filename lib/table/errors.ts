import { CodedError } from '../cluster/coded-error.ts';
export type TableErrorCode =
  /** The table does not exist, or not in this region or account. */
  | 'TableMissing'
  | 'AccessDenied'
  | 'Throttled'
  /** Network faults and 5xx. A write may or may not have happened. */
  | 'Unavailable'
  | 'DeadlineExceeded'
  /** An item is larger than the table takes. */
  | 'ItemTooLarge'
  /** An item's schema is newer than this code. */
  | 'SchemaTooNew'
  | 'Corrupt'
  /** A guaranteed update kept losing, or its outcome is unclear. The next pass reads again. */
  | 'Contended'
  /** A registration is no longer the one that was to be replaced. */
  | 'ChangedMeanwhile'
  | 'Unexpected';

/** Anything about the table that is not an expected outcome. The message says what failed and what to do next. */
export class TableError extends CodedError<TableErrorCode> {
  override readonly name = 'TableError';
}
