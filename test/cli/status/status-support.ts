import type { ClusterStatus } from '../../../cli/status/cluster-status.ts';
import type { StatusInputs } from '../../../cli/status/read-inputs.ts';
import { workOutStatus } from '../../../cli/status/work-out-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import type { ClusterSpec, Loop } from '../../../lib/cluster/cluster-spec.ts';
import type { Lease } from '../../../lib/cluster/lease.ts';
import type { StoredRange } from '../../../lib/range/stored-range.ts';
import type { ListedCluster } from '../../../lib/table/clusters.ts';
import type { RunRecord, RunRecords } from '../../../lib/table/run-records.ts';
import { storedRange } from '../../repair/repair-cluster.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { type LeaseFields, aLease as leaseWith } from '../../support/put-lease.ts';
import { aRunRecord, runRecords } from '../../support/run-records.ts';

export const NOW_MS = 1_700_000_000_000;
export const MINUTE_MS = 60_000;

export function aCluster(spec: Partial<ClusterSpec> = {}, rest: Partial<ListedCluster> = {}): ListedCluster {
  return {
    spec: aClusterSpec(spec),
    generation: 3,
    rangesGeneration: 2,
    writtenAtMs: NOW_MS - 60 * MINUTE_MS,
    ...rest,
  };
}

/** Returns a lease that was refreshed five seconds ago. */
export function aLease(given: Partial<LeaseFields> = {}): Lease {
  const usual = { address: '10.9.8.7', generation: 4, expiresAtMs: NOW_MS + 10_000, lastProbe: 'answered 200' };
  return leaseWith({ ...usual, ...given });
}

export function aStoredRange(taken: readonly number[], rest: Partial<StoredRange> = {}): StoredRange {
  const usual = { range: '10.0.0.0/24', allocator: 'apiserver', generation: 2 } as const;
  return storedRange({ ...usual, data: fromBits(taken), ...rest });
}

/** Returns the inputs of a healthy cluster: each loop ran ten seconds ago. */
export function inputs(given: Partial<StatusInputs> = {}): StatusInputs {
  return {
    cluster: aCluster(),
    pausedAll: undefined,
    leases: [aLease()],
    records: runRecords(NOW_MS - 10_000),
    ranges: [],
    unreadable: [],
    ...given,
  };
}

export function statusOf(given: Partial<StatusInputs> = {}): ClusterStatus {
  return workOutStatus(inputs(given), NOW_MS);
}

/** Returns run records of successful passes, one for each loop. The record of `loop` has these other fields. */
export function recordsWith(loop: Loop, fields: Partial<RunRecord>, startedAtMs: number = NOW_MS): RunRecords {
  return { ...runRecords(startedAtMs), [loop]: aRunRecord(startedAtMs, fields) };
}
