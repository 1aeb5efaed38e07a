import { isOver } from '../cluster/hold.ts';
import { RANGE_KEYS, type RangeKey, rangesOf, repairLoopOf } from '../cluster/spec-ranges.ts';
import { RECORD_AT_LEAST_EVERY_MS } from '../dispatch/due.ts';
import { type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type ReadRange, readRange } from '../table/ranges.ts';
import { type RunRecord, readRunRecord } from '../table/run-records.ts';
import type { ClusterRanges, ExportedRange } from './cluster-ranges.ts';
import { ExchangeError } from './errors.ts';
import { notRegistered } from './import-ranges.ts';
import type { RangeAllocation } from './range-allocation.ts';
import { rangeItems } from './range-items.ts';

export interface ExportOptions {
  readonly nowMs: number;
  /** Default: all that the spec has. */
  readonly keys?: readonly RangeKey[];
  /** Exports what would be refused as it is stored, with a warning, without ranges that are not stored. */
  readonly force?: boolean;
}

export interface Exported {
  readonly clusterRanges: ClusterRanges;
  /** Since the last enforcing pass that succeeded; undefined when none did. In the order of the ranges. */
  readonly agesMs: readonly (number | undefined)[];
  /** Why it would have been refused. */
  readonly warnings: readonly string[];
}

/** More than this many intervals after its last pass, a range may not agree with the cluster. */
const MOST_INTERVALS = 2;

/**
 * Reads a cluster's ranges. Refusals: `NotRegistered`; `NoRecord` where the cluster's own API servers allocate;
 * `NotCurrent` when a loop's last enforcing pass is too old, or has not saved what the spec has by now; `OtherRange`
 * for a range that the spec does not have.
 * @throws TableError of what cannot be read.
 */
export async function exportRanges(
  table: KeyValueTable,
  cluster: string,
  { nowMs, keys, force = false }: ExportOptions,
): Promise<Exported | ExchangeError> {
  const registered = await readCluster(table, cluster);
  if (registered === undefined) return notRegistered(cluster);
  const configured = rangesOf(registered.spec).map(({ key }) => key);
  const unknown = keys?.find((key) => !configured.includes(key));
  if (unknown !== undefined) {
    return new ExchangeError('OtherRange', `Cluster ${cluster} has no ${unknown}, but ${configured.join(', ')}.`);
  }
  const ranges: ExportedRange[] = [];
  const warnings: string[] = [];
  for (const key of keys ?? configured) {
    // The record is read first: the range is then at least as new as the pass that it records.
    const record = (await readRunRecord(table, cluster, repairLoopOf(key)))?.record;
    const read = await readRange(table, cluster, key);
    const refusal = refusalOf({ registered, key, record, read, nowMs });
    if (refusal !== undefined && !force) return refusal;
    if (refusal !== undefined) warnings.push(refusal.message);
    if (read !== undefined) ranges.push(exported(key, read, record, nowMs));
  }
  return {
    clusterRanges: { cluster, exportedAtMs: nowMs, generation: registered.rangesGeneration, ranges },
    agesMs: ranges.map(({ lastPassAtMs }) =>
      lastPassAtMs === undefined ? undefined : Math.max(0, nowMs - lastPassAtMs),
    ),
    warnings,
  };
}

/** Returns the range in the original's format, and what is lost with it. */
export function asRangeAllocation({ key, range, data, holds }: ExportedRange): {
  readonly allocation: RangeAllocation;
  readonly warnings: readonly string[];
} {
  const held = holds.reduce((sum, { items }) => sum + items.length, 0);
  const aboutHolds = `${held} items of ${key} are held: a RangeAllocation keeps no holds, so that the repair of an API server frees them as leaks.`;
  const aboutAddresses = `Kubernetes 1.34 and later do not read /registry/${key}: their API servers take cluster IPs from the Services, as IPAddress objects.`;
  return {
    allocation: { range, data },
    warnings: [...(held === 0 ? [] : [aboutHolds]), ...(key === RANGE_KEYS.nodePorts ? [] : [aboutAddresses])],
  };
}

interface Judged {
  readonly registered: RegisteredCluster;
  readonly key: RangeKey;
  readonly record: RunRecord | undefined;
  readonly read: ReadRange | undefined;
  readonly nowMs: number;
}

function refusalOf({ registered, key, record, read, nowMs }: Judged): ExchangeError | undefined {
  const { spec, rangesGeneration } = registered;
  if (spec.allocator === 'apiserver') {
    return new ExchangeError(
      'NoRecord',
      `Cluster ${spec.name} has "allocator: apiserver": what is stored as ${key} shows what Services claim, and is no record of allocations. Export what its API servers keep in etcd.`,
    );
  }
  const lastPassAtMs = lastEnforcedAtMs(record);
  if (read === undefined || lastPassAtMs === undefined) {
    return notCurrent(
      key,
      `no enforcing pass of ${repairLoopOf(key)} has saved it${record?.observed ? ': they only observe' : ''}`,
    );
  }
  const ageMs = nowMs - lastPassAtMs;
  const intervalMs = spec.intervalSeconds[repairLoopOf(key)] * 1000;
  // Of a loop that runs more often than once a minute, a quiet pass is not recorded each time.
  if (ageMs > Math.max(MOST_INTERVALS * intervalMs, intervalMs + RECORD_AT_LEAST_EVERY_MS)) {
    return notCurrent(key, `the last pass of ${repairLoopOf(key)} that succeeded is ${Math.round(ageMs / 1000)} s old`);
  }
  if (read.stored.allocator !== 'table' || read.stored.generation !== rangesGeneration) {
    return notCurrent(key, 'no enforcing pass has saved it since the ranges of the spec were changed or imported into');
  }
  return undefined;
}

/** A pass that only observed has not changed the range. */
function lastEnforcedAtMs(record: RunRecord | undefined): number | undefined {
  return record?.observed ? undefined : record?.lastSuccessAtMs;
}

function notCurrent(key: RangeKey, why: string): ExchangeError {
  return new ExchangeError(
    'NotCurrent',
    `${key} is not known to agree with the cluster: ${why}. Let a pass succeed first; with this export an address could be allocated twice.`,
  );
}

function exported(key: RangeKey, { stored }: ReadRange, record: RunRecord | undefined, nowMs: number): ExportedRange {
  const { allocator, data } = stored;
  const items = rangeItems(stored.range);
  if (items instanceof ExchangeError) throw items;
  const holds = stored.holds.filter((hold) => !isOver(hold, nowMs));
  const lastPassAtMs = lastEnforcedAtMs(record);
  return { key, range: items.range, allocator, data, holds, ...(lastPassAtMs !== undefined && { lastPassAtMs }) };
}
