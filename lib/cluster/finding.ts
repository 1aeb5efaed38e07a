/**
 * The types of findings; the first seven are the `type` labels of upstream's counters. `stays`: does not resolve automatically.
 * `acute`: requires action, and disappears when its cause is removed. `passes`: requires no action, because the loops resolve the
 * finding, or because it is only information.
 */
const FINDINGS = {
  leak: 'passes',
  repair: 'passes',
  full: 'acute',
  outOfRange: 'stays',
  duplicate: 'stays',
  unknown: 'acute',
  invalid: 'stays',
  /** An address or port is allocated without a Service, and is not freed yet. */
  mayHaveLeaked: 'passes',
  /** The range has no free address or port. The pass continues. */
  nothingFree: 'acute',
  /** A Service has an address or port that is held for another owner. */
  heldByAnother: 'stays',
  /** A Service has an address without an IPAddress, or with an IPAddress that references no existing Service. */
  notRecorded: 'stays',
  /** An IPAddress references no existing Service, or a Service without the address. */
  leakedRecord: 'passes',
  /** An object cannot be read or corrected, and the pass continued without it. */
  notCorrected: 'stays',
  /** Another writer changes the kubernetes Service's endpoints. */
  twoOwners: 'acute',
  /** A probe got an unexpected status, such as 404, or TLS failed. */
  oddProbe: 'passes',
  /** The endpoints would be empty, so they stay unchanged. */
  noLiveLease: 'acute',
  /** The kubernetes Service differs in a field that no pass corrects. */
  serviceDiffers: 'stays',
  /** A server that does not answer is still published, because no API server accepts its removal. */
  deadServerPublished: 'stays',
  foreignSlice: 'passes',
  /** A stored range does not parse, so it stays unchanged. */
  corruptSnapshot: 'acute',
  other: 'passes',
} as const satisfies Readonly<Record<string, 'stays' | 'acute' | 'passes'>>;

export type FindingType = keyof typeof FINDINGS;

function typesThat(end: 'stays' | 'passes'): ReadonlySet<FindingType> {
  const types = Object.keys(FINDINGS) as FindingType[];
  return new Set(types.filter((type) => FINDINGS[type] === end));
}

export const FINDINGS_THAT_STAY = typesThat('stays');
export const PASSING_FINDINGS = typesThat('passes');

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
  /** The type of the event. Default: `Warning`. */
  readonly type?: 'Normal';
  /** Upstream's reason, such as `ClusterIPNotAllocated`. Events about API servers have reasons of this project. */
  readonly reason: string;
  /** Upstream's action, such as `ClusterIPAllocation`. Events about API servers have the action `EndpointsUpdate`. */
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

/** How often an event was reported, and the times of its last report and write. A run record has one sighting per event name. */
export interface EventSighting {
  readonly count: number;
  readonly lastSeenAtMs: number;
  readonly lastWrittenAtMs: number;
}
