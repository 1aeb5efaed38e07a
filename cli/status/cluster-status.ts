import type { AllocatorOfRecord, ApiServerKind, Loop, Mode } from '../../lib/cluster/cluster-spec.ts';
import type { Lease } from '../../lib/cluster/lease.ts';
import type { RangeKey } from '../../lib/cluster/spec-ranges.ts';
import type { Hold } from '../../lib/range/hold.ts';
import type { Pause } from '../../lib/table/clusters.ts';
import type { RecordedFinding, RunRecord } from '../../lib/table/run-records.ts';

/**
 * The status of one cluster, computed from the table, for `kbctl status` and the page. It contains no credential. Times
 * are milliseconds since 1970.
 */
export interface ClusterStatus {
  readonly name: string;
  readonly mode: Mode;
  readonly allocator: AllocatorOfRecord;
  readonly generation: number;
  /** The stack whose passes write to the cluster; absent if no stack owns it. */
  readonly owner?: { readonly stack: string };
  readonly paused?: PauseStatus;
  readonly health: Health;
  readonly attention: readonly Attention[];
  readonly apiServers: readonly ApiServerStatus[];
  readonly loops: readonly LoopStatus[];
  /** The ranges of the spec that a pass saved or counted, in the order of RANGE_KEYS. */
  readonly ranges: readonly RangeStatus[];
  readonly findings: readonly FindingStatus[];
  /** Messages about items that do not parse, or that a later version wrote. */
  readonly unreadable: readonly string[];
}

/** `unhealthy`: action required. `warning`: the problem may resolve automatically. `unknown`: no pass ran yet. */
export type Health = 'unhealthy' | 'warning' | 'unknown' | 'paused' | 'good';

export const HEALTHS: readonly Health[] = ['unhealthy', 'warning', 'unknown', 'paused', 'good'];

export interface PauseStatus extends Pause {
  readonly all: boolean;
}

export interface Attention {
  readonly level: 'unhealthy' | 'warning';
  /**
   * A word that `explain` accepts: a finding type, or `late`, `failing`, `neverRan`, `noLiveLease`, `unreadable`,
   * `almostFull`.
   */
  readonly word: string;
  readonly message: string;
  readonly next: string;
}

export interface ApiServerStatus extends Partial<Pick<Lease, 'source' | 'misses' | 'lastProbe'>> {
  /** The address as canonical text; absent for a host name of the spec without a lease. */
  readonly address?: string;
  readonly host?: string;
  readonly kind?: ApiServerKind;
  /**
   * `active`: an active lease. `expired`: an expired one. `withdrawn`: not published before the end of its withdrawal.
   * `neverSeen`: no lease.
   */
  readonly state: 'active' | 'expired' | 'withdrawn' | 'neverSeen';
  readonly withdrawnUntilMs?: number;
  readonly expiresAtMs?: number;
  /** The time of the last refresh. Absent if the lease was changed after its last refresh. */
  readonly refreshedAtMs?: number;
}

export const LEASE_WORDS: Readonly<Record<ApiServerStatus['state'], string>> = {
  active: 'valid',
  expired: 'expired',
  withdrawn: 'withdrawn',
  neverSeen: 'never seen',
};

export interface LoopStatus
  extends Pick<RunRecord, 'failuresInARow' | 'lastSuccessAtMs' | 'wouldWrite' | 'lastChange'> {
  readonly loop: Loop;
  /**
   * `good`: the last pass succeeded. `failing`: it failed. `late`: no pass was recorded for three intervals and a
   * minute, as in the alarm clusters-overdue. `unknown`: the record cannot be read.
   */
  readonly state: 'good' | 'failing' | 'late' | 'neverRan' | 'paused' | 'unknown';
  readonly intervalSeconds: number;
  readonly lastPass?: Pick<RunRecord, 'startedAtMs' | 'durationMs' | 'outcome' | 'mode' | 'counts' | 'error'> & {
    readonly findings: number;
  };
  /**
   * The time of a later pass that was not recorded, because passes without news are recorded once a minute. Absent: unknown.
   */
  readonly lastRanAtMs?: number;
}

export interface RangeStatus {
  readonly key: RangeKey;
  /** The title: `cluster IPs`, `secondary cluster IPs` or `node ports`. */
  readonly title: string;
  /** The canonical text of the range, such as `10.0.0.0/24` or `30000-32767`; for a sum, such as `2 ServiceCIDRs of IPv4`. */
  readonly range: string;
  readonly serviceCidr?: string;
  readonly sumOf?: number;
  /** True for one of several ranges of the API servers. Only the sum of these ranges shows whether anything is free. */
  readonly part?: true;
  /** The range in the spec, if it differs from `range`: no pass has counted it yet. */
  readonly specRange?: string;
  /** The source of the figures. `table`: the record. `apiserver`: what Services claimed at the last pass. */
  readonly allocator: AllocatorOfRecord;
  /**
   * With `allocator: table`, true if allocation is open: an enforcing pass of this generation must have saved the range.
   * False for a ServiceCIDR that is not ready or is being deleted. Absent: the API servers allocate, or the range was not
   * read.
   */
  readonly ready?: boolean;
  /** Absent: the range was not saved or was not read, and the figures are those of the last pass. */
  readonly savedAtMs?: number;
  readonly capacity: number;
  readonly used: number;
  readonly free: number;
  readonly usedPercent: number;
  readonly reserved: number;
  /** Items with one or two strikes: in use without a Service. */
  readonly leaking: number;
  readonly held: number;
  /** The number of distinct items with a finding `duplicate`. */
  readonly duplicates: number;
  readonly holds: readonly Hold[];
  /**
   * The map of the range. Absent if the range was not read. With `allocator: apiserver`, also absent if the range is larger than
   * a bitmap.
   */
  readonly map?: RangeMap;
}

/** Returns the ranges that count on their own, without those that are part of a sum. */
export function wholeRanges({ ranges }: Pick<ClusterStatus, 'ranges'>): readonly RangeStatus[] {
  return ranges.filter(({ part }) => !part);
}

/** Returns the health of a range by the thresholds of the alarms range-filling and range-nearly-full. */
export function levelOfUse(usedPercent: number): Attention['level'] | undefined {
  if (usedPercent > 95) return 'unhealthy';
  return usedPercent > 80 ? 'warning' : undefined;
}

/**
 * A range as cells of equal size, in order: one item each for up to 1,024 cells, otherwise buckets of a power of two.
 */
export interface RangeMap {
  readonly itemsPerCell: number;
  /** The first item of the first cell: a network's own address, the lowest port. */
  readonly first: string;
  readonly cells: string;
  /** The number of items in use per bucket; absent if a cell is one item. */
  readonly fill?: readonly number[];
}

/**
 * Letters of `RangeMap.cells`. A bucket has the first of these states that one of its items has: D duplicate, L leaking, H
 * held, U in use, R free in the reserved band, F free, X not usable (network, broadcast). Duplicates are findings of the last
 * pass; the other states come from the saved range.
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
  readonly seenAtMs: number;
  readonly resolution: string;
}

export interface FleetStatus {
  readonly atMs: number;
  readonly table: string;
  readonly pausedAll?: Pause;
  readonly clusters: readonly ClusterStatus[];
  readonly unreadable: readonly { readonly name: string; readonly message: string }[];
}
