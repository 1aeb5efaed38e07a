import type { Lease } from '../../lib/leases/lease.ts';
import type { Hold } from '../../lib/range/hold.ts';
import type { AllocatorOfRecord, ApiServerKind, Loop, Mode } from '../../lib/spec/cluster-spec.ts';
import type { RangeKey } from '../../lib/spec/spec-ranges.ts';
import type { Pause } from '../../lib/table/clusters.ts';
import type { RecordedFinding, RunRecord } from '../../lib/table/run-records.ts';

export interface ClusterStatus {
  readonly name: string;
  readonly mode: Mode;
  readonly allocator: AllocatorOfRecord;
  readonly generation: number;
  readonly owner?: { readonly stack: string };
  readonly paused?: PauseStatus;
  readonly health: Health;
  readonly attention: readonly Attention[];
  readonly apiServers: readonly ApiServerStatus[];
  readonly loops: readonly LoopStatus[];
  readonly ranges: readonly RangeStatus[];
  /** The findings that the run records keep, at most 20 of each loop. */
  readonly findings: readonly FindingStatus[];
  readonly findingTotal: number;
  /** The number of all findings by type. */
  readonly findingCounts: Readonly<Record<string, number>>;
  readonly unreadable: readonly string[];
}

/** `unhealthy`: action required. `warning`: the problem may resolve automatically. `unknown`: a loop has not run yet. */
export const HEALTHS = ['unhealthy', 'warning', 'unknown', 'paused', 'good'] as const;
export type Health = (typeof HEALTHS)[number];

export interface PauseStatus extends Pause {
  readonly all: boolean;
}

export interface Attention {
  readonly level: 'unhealthy' | 'warning';
  /** A word that `kbctl explain` accepts, such as `duplicate` or `late`. */
  readonly word: string;
  readonly message: string;
  readonly next: string;
}

export interface ApiServerStatus extends Partial<Pick<Lease, 'source' | 'misses' | 'lastProbe'>> {
  /** The address of the API server. Absent if a host name of the spec has no lease. */
  readonly address?: string;
  readonly host?: string;
  readonly kind?: ApiServerKind;
  /** `withdrawn`: not published until the withdrawal has ended and the API server answers. `neverSeen`: there is no lease. */
  readonly state: 'active' | 'expired' | 'withdrawn' | 'neverSeen';
  readonly withdrawnUntilMs?: number;
  readonly expiresAtMs?: number;
  /** The time of the last refresh. Absent if the lease no longer shows it: after a miss, a withdrawal or the expiry. */
  readonly refreshedAtMs?: number;
}

export interface LoopStatus
  extends Pick<RunRecord, 'failuresInARow' | 'lastSuccessAtMs' | 'wouldWrite' | 'lastChange'> {
  readonly loop: Loop;
  /** `late`: no pass was recorded for `overdueAfterMs`, about three intervals. `unknown`: the record cannot be read. */
  readonly state: 'good' | 'failing' | 'late' | 'neverRan' | 'paused' | 'unknown';
  readonly intervalSeconds: number;
  /** The time at which the first pass is due. Absent if the pass has run or is overdue, or if the cluster is paused. */
  readonly firstPassAtMs?: number;
  readonly lastPass?: Pick<RunRecord, 'startedAtMs' | 'durationMs' | 'outcome' | 'mode' | 'counts' | 'error'> & {
    readonly findings: number;
  };
  /** The time of a pass that ran after `lastPass` and has no record. Absent if no such pass is known. */
  readonly lastRanAtMs?: number;
}

export interface RangeStatus {
  readonly key: RangeKey;
  readonly title: string;
  /** The canonical text of the range; for the sum of several ServiceCIDRs, a description such as `2 ServiceCIDRs of IPv4`. */
  readonly range: string;
  readonly serviceCidr?: string;
  readonly sumOf?: number;
  /** True for a ServiceCIDR whose family has more than one ServiceCIDR. */
  readonly part?: true;
  /** The new range in the spec, if `range` is still the old range because no pass has counted the new one. */
  readonly specRange?: string;
  /** With `table`, the figures count allocations in the table; with `apiserver`, what Services claimed at the last pass. */
  readonly allocator: AllocatorOfRecord;
  /**
   * If the table allocates: whether an enforcing pass of this generation saved the range; absent if that is not known.
   * If API servers allocate: false for a ServiceCIDR that is not ready, else absent.
   */
  readonly ready?: boolean;
  /** The time at which the range was saved. Absent if the figures are from the last pass and not from a saved range. */
  readonly savedAtMs?: number;
  readonly capacity: number;
  readonly used: number;
  readonly free: number;
  readonly usedPercent: number;
  readonly reserved: number;
  readonly leaking: number;
  readonly held: number;
  readonly duplicates: number;
  /** True if there are findings that the run record does not keep: `leaking` and `duplicates` may be too small. */
  readonly atLeast?: true;
  readonly holds: readonly Hold[];
  /** The map of the range. Absent in a brief status, and if no pass has saved the usage of the range. */
  readonly map?: RangeMap;
}

/** Returns the ranges. For a family with several ServiceCIDRs, returns only the sum of its ServiceCIDRs. */
export function wholeRanges({ ranges }: Pick<ClusterStatus, 'ranges'>): readonly RangeStatus[] {
  return ranges.filter(({ part }) => !part);
}

/** Returns the health of a range by the thresholds of the alarms range-filling and range-nearly-full. */
export function levelOfUse(usedPercent: number): Attention['level'] | undefined {
  if (usedPercent > 95) return 'unhealthy';
  return usedPercent > 80 ? 'warning' : undefined;
}

/** A map of a range, with at most 1,024 cells. The number of items in a cell is a power of two. */
export interface RangeMap {
  readonly itemsPerCell: number;
  readonly first: string;
  readonly cells: string;
  /** The number of items in use in each cell; absent if each cell is a single item. */
  readonly fill?: readonly number[];
}

/** Duplicate, leaking, held, in use, reserved, free or not usable: the first of these that an item of the cell has. */
export type CellState = 'D' | 'L' | 'H' | 'U' | 'R' | 'F' | 'X';

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
