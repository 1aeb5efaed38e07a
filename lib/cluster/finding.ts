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
  /** An address or port is allocated without a Service, and is not freed yet. */
  | 'mayHaveLeaked'
  /** The range has no free address or port. The pass continues. */
  | 'nothingFree'
  /** A Service has an address or port that is held for another owner. */
  | 'heldByAnother'
  /** A Service has an address without an IPAddress. */
  | 'notRecorded'
  /** An IPAddress has no Service. */
  | 'leakedRecord'
  /** An object cannot be read or corrected, and the pass continued without it. */
  | 'notCorrected'
  /** Another writer changes the kubernetes Service's endpoints. */
  | 'twoOwners'
  /** The answer to a probe means neither alive nor down. */
  | 'oddProbe'
  /** The endpoints would be empty, so they stay unchanged. */
  | 'noLiveLease'
  /** The kubernetes Service differs in a field that no pass corrects. */
  | 'serviceDiffers'
  /** A server that does not answer is still published, because no API server accepts its removal. */
  | 'deadServerPublished'
  | 'foreignSlice'
  /** A stored range does not parse, so it stays unchanged. */
  | 'corruptSnapshot'
  | 'other';

/** Findings that do not resolve automatically. */
export const FINDINGS_THAT_STAY: ReadonlySet<FindingType> = new Set([
  'duplicate',
  'outOfRange',
  'invalid',
  'heldByAnother',
  'notRecorded',
  'notCorrected',
  'deadServerPublished',
  'serviceDiffers',
] as const);

/** Findings that require no action: the loops resolve them, or they are information. */
export const PASSING_FINDINGS: ReadonlySet<FindingType> = new Set([
  'repair',
  'mayHaveLeaked',
  'leakedRecord',
  'leak',
  'oddProbe',
  'foreignSlice',
  'other',
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
  /** Default: `Warning`. */
  readonly type?: 'Normal';
  /** Upstream's reason, such as `ClusterIPNotAllocated` or `PortOutOfRange`. Events of API servers have reasons of this project. */
  readonly reason: string;
  /** Upstream's action: `ClusterIPAllocation`, `ClusterIPValidation` or `PortAllocation`; or `EndpointsUpdate`. */
  readonly action: string;
  readonly note: string;
}

export interface Finding {
  readonly type: FindingType;
  /** The message of the finding, which is upstream's message if upstream has one. */
  readonly message: string;
  readonly item?: string;
  /** The affected Service, as `namespace/name`. */
  readonly service?: string;
  readonly event?: EventDraft;
}

/** The number and the times of the sightings of an event. The run record keeps them by event name. */
export interface EventSighting {
  readonly count: number;
  readonly lastSeenAtMs: number;
  readonly lastWrittenAtMs: number;
}
