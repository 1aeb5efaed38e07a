export type RefusalCode =
  | 'Full'
  | 'AlreadyAllocated'
  | 'NotInRange'
  /** The stored range has another CIDR or port range than the spec. */
  | 'MismatchedRange'
  /** No item can be allocated now, because no pass has saved the range for this spec yet, or no repair succeeded recently. */
  | 'NotReady'
  | 'Unparsable'
  | 'BadHold'
  /** The hold to change does not exist, or belongs to another owner. */
  | 'NotHeld'
  | 'HoldsFull'
  /** Admission has allocated too many items that no pass has seen in Services yet. */
  | 'TooManyUnclaimed'
  /** Only answers of the function `allocate` have this code and the following codes (docs/allocate-reference.md). */
  | 'NotRegistered'
  | 'CallerRefused'
  | 'OtherStack'
  | 'ObserveOnly'
  | 'NotSupported'
  | 'NoSecondaryRange'
  | 'RequestIdTaken'
  | 'InProgress';

/** The reason why an operation changed nothing. The message is upstream's message if upstream has one. */
export interface Refusal {
  readonly outcome: 'refused';
  readonly code: RefusalCode;
  readonly message: string;
  /** The index of the refused item in the request. Absent if the refusal is not about a single item. */
  readonly index?: number;
}

export function refused(code: RefusalCode, message: string): Refusal {
  return { outcome: 'refused', code, message };
}

export function isRefused(result: unknown): result is Refusal {
  return typeof result === 'object' && result !== null && 'outcome' in result && result.outcome === 'refused';
}

export function rangeIsFull(): Refusal {
  return refused('Full', 'range is full');
}
