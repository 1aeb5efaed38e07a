/**
 * What a finding is. The first seven are the `type` labels of the original's counters; the rest are ours and are
 * logged, not counted under the original's names.
 */
export type FindingType =
  | 'leak'
  | 'repair'
  | 'full'
  | 'outOfRange'
  | 'duplicate'
  | 'unknown'
  | 'invalid'
  /** Seen without a Service, not yet freed. */
  | 'mayHaveLeaked'
  /** Nothing left to allocate; not an abort. */
  | 'nothingFree'
  /** A Service has what is held for others than it. */
  | 'heldByAnother'
  /** The API servers' record, the IPAddresses, lacks the address of a Service. */
  | 'notRecorded'
  /** An IPAddress of the API servers that no Service has. */
  | 'leakedRecord'
  /** Somebody else writes the kubernetes Service's endpoints. */
  | 'twoOwners'
  /** A probe's answer that is neither alive nor down. */
  | 'oddProbe'
  /** Endpoints would be empty; kept as they are. */
  | 'noLiveLease'
  | 'foreignSlice'
  /** A stored snapshot that does not parse; left as it is. */
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
  /** `ClusterIPNotAllocated`, `PortOutOfRange`, ... as the original's. */
  readonly reason: string;
  /** `ClusterIPAllocation`, `ClusterIPValidation` or `PortAllocation`. */
  readonly action: string;
  readonly note: string;
}

export interface Finding {
  readonly type: FindingType;
  /** What the original reports for it, to the letter where it has one. */
  readonly message: string;
  readonly item?: string;
  /** `namespace/name` of the Service it is about. */
  readonly service?: string;
  readonly event?: EventDraft;
}

/** How often an event was seen; kept in the run record, by the event's name. */
export interface EventSighting {
  readonly count: number;
  readonly lastSeenAtMs: number;
  readonly lastWrittenAtMs: number;
}
