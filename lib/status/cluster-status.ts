import type { AllocatorOfRecord, ApiServerKind, Loop, Mode } from '../cluster/cluster-spec.ts';
import type { Lease } from '../cluster/lease.ts';
import type { RangeKey } from '../cluster/spec-ranges.ts';
import type { Hold } from '../range/hold.ts';
import type { Pause } from '../table/clusters.ts';
import type { RecordedFinding, RunRecord } from '../table/run-records.ts';

/**
 * The status of one cluster as the table has it, for `kbctl status` and the page. It contains no credential. Times are
 * milliseconds since 1970.
 */
export interface ClusterStatus {
  readonly name: string;
  readonly mode: Mode;
  readonly allocator: AllocatorOfRecord;
  readonly generation: number;
  /** The stack whose passes write to the cluster; absent if no stack owns it yet. */
  readonly owner?: { readonly stack: string };
  readonly paused?: PauseStatus;
  /** The worst of all below. */
  readonly health: Health;
  /** Problems, the worst first. */
  readonly attention: readonly Attention[];
  readonly apiServers: readonly ApiServerStatus[];
  /** All four, in the order of LOOPS. */
  readonly loops: readonly LoopStatus[];
  /** Those of the spec that were saved, or that a pass has counted, in the order of RANGE_KEYS. */
  readonly ranges: readonly RangeStatus[];
  /** Of the last passes. */
  readonly findings: readonly FindingStatus[];
  /** Sentences about items that do not parse, or that a later version wrote. */
  readonly unreadable: readonly string[];
}

/** `bad`: action required. `warning`: it may resolve automatically. `unknown`: no pass ran yet. */
export type Health = 'bad' | 'warning' | 'unknown' | 'paused' | 'good';

export interface PauseStatus extends Pause {
  /** The pause of all clusters, not of this one. */
  readonly all: boolean;
}

export interface Attention {
  readonly level: 'bad' | 'warning';
  /** A finding type, or `late`, `failing`, `neverRan`, `noLiveLease`, `unreadable`, `almostFull`: what `explain` takes. */
  readonly word: string;
  readonly message: string;
  /** What to do, in one line. */
  readonly next: string;
}

export interface ApiServerStatus extends Partial<Pick<Lease, 'source' | 'withdrawnUntilMs' | 'misses' | 'lastProbe'>> {
  /** Canonical text; absent for a host name of the spec without a lease. */
  readonly address?: string;
  readonly host?: string;
  /** Absent: not in the spec. */
  readonly kind?: ApiServerKind;
  /**
   * `held`: a valid lease, published if its loop could write. `ranOut`: an expired one. `withdrawn`: not published
   * before its time, and then not before it answers. `neverSeen`: no lease.
   */
  readonly state: 'held' | 'ranOut' | 'withdrawn' | 'neverSeen';
  /** When the lease expires, or did. */
  readonly expiresAtMs?: number;
  /** Absent where something else was written into the lease since. */
  readonly refreshedAtMs?: number;
}

export const LEASE_WORDS: Readonly<Record<ApiServerStatus['state'], string>> = {
  held: 'valid',
  ranOut: 'expired',
  withdrawn: 'withdrawn',
  neverSeen: 'never seen',
};

export interface LoopStatus
  extends Pick<RunRecord, 'failuresInARow' | 'lastSuccessAtMs' | 'wouldWrite' | 'lastChange'> {
  readonly loop: Loop;
  /**
   * `good`: the last pass succeeded. `failing`: it did not. `late`: none was recorded for three intervals and a
   * minute, as the alarm clusters-overdue has it. `neverRan`. `unknown`: its record cannot be read.
   */
  readonly state: 'good' | 'failing' | 'late' | 'neverRan' | 'paused' | 'unknown';
  readonly intervalSeconds: number;
  readonly lastPass?: Pick<RunRecord, 'startedAtMs' | 'durationMs' | 'outcome' | 'mode' | 'counts' | 'error'> & {
    /** How many it had, also where fewer were kept. */
    readonly findings: number;
  };
  /** When it ran after its last recorded pass: a pass without news is recorded once a minute. Absent: not known. */
  readonly lastRanAtMs?: number;
}

export interface RangeStatus {
  readonly key: RangeKey;
  /** `cluster IPs`, `secondary cluster IPs`, `node ports`. */
  readonly title: string;
  /** Canonical text: `10.0.0.0/24`, `30000-32767`; of a sum, `2 ServiceCIDRs of IPv4`. */
  readonly range: string;
  /** The name of the ServiceCIDR, where API servers allocate from it. */
  readonly serviceCidr?: string;
  /** How many ServiceCIDRs it is the sum of. */
  readonly sumOf?: number;
  /** One of several ranges that API servers allocate from: its sum decides whether anything is free. */
  readonly part?: true;
  /** The range in the spec, where it differs: no pass has counted it yet. */
  readonly specRange?: string;
  /** `table`: the record. `apiserver`: what Services claimed at the last pass. */
  readonly allocator: AllocatorOfRecord;
  /**
   * With `allocator: table`, whether it may be allocated from: not before an enforcing pass of this generation has
   * saved it. False of a ServiceCIDR that is not ready or is being deleted. Absent: the API servers allocate, or what is
   * saved was not read.
   */
  readonly ready?: boolean;
  /** Absent: nothing was saved, or it was not read; the figures are those of the last pass. */
  readonly savedAtMs?: number;
  readonly capacity: number;
  readonly used: number;
  readonly free: number;
  readonly usedPercent: number;
  /** Size of the low band that is allocated last. */
  readonly reserved: number;
  /** Items with a strike or two: in use without a Service. */
  readonly leaking: number;
  /** Items of `holds`. */
  readonly held: number;
  /** Distinct items that findings call duplicates. */
  readonly duplicates: number;
  /** Those that are not over. */
  readonly holds: readonly Hold[];
  /** Absent where no bits are kept (a range that is larger than a bitmap, with `apiserver`), or none were read. */
  readonly map?: RangeMap;
}

/** Returns the ranges that count on their own, without those that are part of a sum. */
export function wholeRanges({ ranges }: Pick<ClusterStatus, 'ranges'>): readonly RangeStatus[] {
  return ranges.filter(({ part }) => !part);
}

/** How bad it is that so much of a range is in use, by the thresholds of the alarms range-filling and range-nearly-full. */
export function levelOfUse(usedPercent: number): Attention['level'] | undefined {
  if (usedPercent > 95) return 'bad';
  return usedPercent > 80 ? 'warning' : undefined;
}

/** A range as cells of equal size, in order: one item each up to 4,096 cells, buckets of a power of two above. */
export interface RangeMap {
  readonly itemsPerCell: number;
  /** Text of the first item of the first cell: a network's own address, the lowest port. */
  readonly first: string;
  /** One letter of CELL_STATES a cell. */
  readonly cells: string;
  /** Items in use, of each bucket; absent when a cell is one item. */
  readonly fill?: readonly number[];
}

/**
 * Letters of `RangeMap.cells`; of a bucket's items the first of this list decides:
 * D duplicate, L leaking, H held, U in use, R free in the reserved band, F free, X not usable (network, broadcast).
 * A duplicate is what the last pass found, the others are what is saved.
 */
export const CELL_STATES = {
  D: 'duplicate',
  L: 'leaking',
  H: 'held',
  U: 'in use',
  R: 'reserved',
  F: 'free',
  X: 'not usable',
} as const;
export type CellState = keyof typeof CELL_STATES;

export interface FindingStatus extends RecordedFinding {
  readonly loop: Loop;
  /** When the pass that saw it began. */
  readonly seenAtMs: number;
  readonly mend: string;
}

export interface FleetStatus {
  readonly atMs: number;
  readonly table: string;
  readonly pausedAll?: Pause;
  /** Those that need attention first, then by name. */
  readonly clusters: readonly ClusterStatus[];
  readonly unreadable: readonly { readonly name: string; readonly message: string }[];
}
