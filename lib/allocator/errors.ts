export type AllocatorErrorCode =
  | 'Full'
  | 'AlreadyAllocated'
  | 'NotInRange'
  /** A snapshot, or the stored range, belongs to another range. */
  | 'MismatchedRange'
  /** Allocation is not open yet: no pass has saved the range. */
  | 'NotReady'
  /** A CIDR, port range or snapshot that does not parse. */
  | 'Unparsable'
  /** An invalid owner or time of a hold. */
  | 'BadHold'
  /** The hold to change does not exist, or belongs to another owner. */
  | 'NotHeld'
  /** The range has no room for more holds. */
  | 'HoldsFull'
  /** Admission allocated more than is safe before a pass has seen it in Services. */
  | 'TooManyUnclaimed';

/**
 * An expected refusal of an allocator; returned, not thrown. Messages are upstream's where it has one. It has no stack,
 * which would cost more than the rest of a claim: every Service of a list may be refused.
 */
export class AllocatorError extends Error {
  override readonly name = 'AllocatorError';
  readonly code: AllocatorErrorCode;

  constructor(code: AllocatorErrorCode, message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
  }
}

export function rangeIsFull(): AllocatorError {
  return new AllocatorError('Full', 'range is full');
}
