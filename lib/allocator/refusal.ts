export type RefusalCode =
  | 'Full'
  | 'AlreadyAllocated'
  | 'NotInRange'
  /** A snapshot, or the stored range, belongs to another range. */
  | 'MismatchedRange'
  /** Allocation is not open yet: no pass has saved the range. */
  | 'NotReady'
  /** A CIDR, port range or snapshot that does not parse. */
  | 'Unparsable'
  /** The hold would end in the past. */
  | 'BadHold'
  /** The hold to change does not exist, or belongs to another owner. */
  | 'NotHeld'
  /** The range has no room for more holds. */
  | 'HoldsFull'
  /** Admission allocated more than is safe before a pass has seen it in Services. */
  | 'TooManyUnclaimed'
  /** The codes from here on are only for requests to allocate (docs/allocate-reference.md). */
  | 'NotRegistered'
  | 'CallerRefused'
  | 'OtherStack'
  | 'ObserveOnly'
  | 'NotSupported'
  | 'NoSecondaryRange'
  | 'RequestIdTaken'
  | 'InProgress';

/** The reason why nothing was changed. Messages are upstream's where it has one. */
export interface Refusal {
  readonly outcome: 'refused';
  readonly code: RefusalCode;
  readonly message: string;
  /** The index of the item in the request; absent if the refusal is not about a single item. */
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
