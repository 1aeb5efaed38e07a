/**
 * The type of a finding. The first seven are the `type` labels of upstream's counters; the others are ours and are
 * logged, not counted under upstream's names.
 */
export type FindingType =
  | 'leak'
  | 'repair'
  | 'full'
  | 'outOfRange'
  | 'duplicate'
  | 'unknown'
  | 'invalid'
  /** Allocated without a Service, not yet freed. */
  | 'mayHaveLeaked'
  /** The range has no free item; the pass continues. */
  | 'nothingFree'
  /** A Service has an item that is held for another owner. */
  | 'heldByAnother'
  /** A Service has an address without an IPAddress. */
  | 'notRecorded'
  /** An IPAddress without a Service. */
  | 'leakedRecord'
  /** Another writer changes the kubernetes Service's endpoints. */
  | 'twoOwners'
  /** A probe's answer that means neither alive nor down. */
  | 'oddProbe'
  /** The endpoints would be empty; they stay unchanged. */
  | 'noLiveLease'
  | 'foreignSlice'
  /** A stored snapshot does not parse; it stays unchanged. */
  | 'corruptSnapshot'
  | 'other';

/** Findings of the repair loops that do not resolve automatically. */
export const FINDINGS_THAT_STAY: ReadonlySet<FindingType> = new Set([
  'duplicate',
  'outOfRange',
  'invalid',
  'heldByAnother',
  'notRecorded',
] as const);

export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface EventDraft {
  readonly regarding: Regarding;
  /** `ClusterIPNotAllocated`, `PortOutOfRange`, ... as upstream. */
  readonly reason: string;
  /** `ClusterIPAllocation`, `ClusterIPValidation` or `PortAllocation`. */
  readonly action: string;
  readonly note: string;
}

export interface Finding {
  readonly type: FindingType;
  /** Upstream's message, exactly, if it has one. */
  readonly message: string;
  readonly item?: string;
  /** `namespace/name` of the affected Service. */
  readonly service?: string;
  readonly event?: EventDraft;
}

/** How often an event was seen. The run record keeps it by the event's name. */
export interface EventSighting {
  readonly count: number;
  readonly lastSeenAtMs: number;
  readonly lastWrittenAtMs: number;
}
