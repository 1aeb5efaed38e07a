export type RepairErrorCode =
  /** An allocator said that its range is full while claims were still coming. */
  | 'Full'
  /** An allocator refused a claim for an unexpected reason. */
  | 'Unknown'
  /** What is stored of a range does not parse. */
  | 'CorruptSnapshot'
  /** The configured range does not parse, or two ranges are of one family. */
  | 'BadRange'
  /** The range was saved under a newer spec than this pass knows. */
  | 'OlderSpec';

/** Why a repair ended before it saved anything. Messages are the original's where it has one. */
export class RepairError extends Error {
  override readonly name = 'RepairError';
  readonly code: RepairErrorCode;

  constructor(code: RepairErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
