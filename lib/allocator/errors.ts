export type AllocatorErrorCode =
  | 'Full'
  | 'AlreadyAllocated'
  | 'NotInRange'
  /** A snapshot, or the stored range, is of another range. */
  | 'MismatchedRange'
  /** Nothing may be allocated yet: no pass has saved the range. */
  | 'NotReady'
  /** A CIDR, port range or snapshot that does not parse. */
  | 'Unparsable';

/** An expected refusal of an allocator; returned, not thrown. Messages are those of the original's allocators. */
export class AllocatorError extends Error {
  override readonly name = 'AllocatorError';
  readonly code: AllocatorErrorCode;

  constructor(code: AllocatorErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function rangeIsFull(): AllocatorError {
  return new AllocatorError('Full', 'range is full');
}
