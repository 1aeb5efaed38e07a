import type { RangeKey } from '../cluster/spec-ranges.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import type { ListedCluster, Pause } from '../table/clusters.ts';
import type { ListedLease } from '../table/leases.ts';
import type { RunRecords } from '../table/run-records.ts';

/** All that the table has of one cluster, as far as it could be read. */
export interface StatusInputs {
  readonly cluster: ListedCluster;
  readonly pausedAll: Pause | undefined;
  readonly leases: readonly ListedLease[];
  readonly records: RunRecords;
  /** Absent: they were not read. */
  readonly ranges?: readonly SavedRange[];
  readonly unreadable: readonly UnreadableItem[];
}

export interface SavedRange {
  readonly key: RangeKey;
  readonly stored: StoredRange;
  readonly savedAtMs: number;
}

/** An item that is there and does not parse, or that a later version wrote. */
export interface UnreadableItem {
  /** Empty where the table does not say which it is. */
  readonly key: string;
  /** A sentence that says what, why and what to do. */
  readonly message: string;
}
