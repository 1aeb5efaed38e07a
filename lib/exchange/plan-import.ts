import { intersect, popCount, subtract, union } from '../allocator/snapshot-bytes.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { type Hold, isOver, withHold } from '../cluster/hold.ts';
import { RANGE_KEYS, type RangeKey, rangesOf, type SpecRange } from '../cluster/spec-ranges.ts';
import { NO_STRIKES, type StoredRange } from '../cluster/stored-range.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { MOST_HOLD_BYTES, sizeOfHolds } from '../table/ranges.ts';
import type { ExportedRange } from './cluster-ranges.ts';
import { ExchangeError } from './errors.ts';
import type { ExchangeFile } from './exchange-file.ts';
import { rangeItems } from './range-items.ts';

/** One range of a file, whichever its form. */
export type IncomingRange = Pick<ExportedRange, 'key' | 'range' | 'allocator' | 'data' | 'holds'>;

/** What an import makes of one range. Sets of items are bits of `range`; `rangeItems(range).in(bits)` names them. */
export interface ImportPlan {
  readonly key: IncomingRange['key'];
  readonly range: string;
  /** Taken in the import and free here. */
  readonly toSet: Uint8Array;
  /** Taken in both. */
  readonly alreadySet: Uint8Array;
  /** Taken here and free in the import: it stays taken. */
  readonly onlyHere: Uint8Array;
  /** Of `alreadySet`: whose leak strikes are cleared. */
  readonly struck: Uint8Array;
  /** Holds of the import, as far as they are taken over. */
  readonly holds: readonly Hold[];
  /** How many items of the import's holds are not: taken here already, or their hold is over. */
  readonly holdsLeftOut: number;
  readonly changes: boolean;
  /** What the range is to be, but for its generation. */
  readonly next: Omit<StoredRange, 'generation'>;
}

const NOTHING = new Uint8Array(0);

/**
 * What it takes to have everything in `stored` that `incoming` has: bits are set and never cleared, leak strikes of
 * imported items are cleared, and a hold comes along where its item was free here. Refusals: `OtherRange`, `NoRecord`,
 * `HoldsFull`.
 * @param configured the range as the cluster's spec has it, which is that of `incoming`
 * @param stored undefined when no pass has saved the range
 */
export function planImport(
  stored: StoredRange | undefined,
  incoming: IncomingRange,
  { configured, nowMs }: { readonly configured: string; readonly nowMs: number },
): ImportPlan | ExchangeError {
  const refusal = refusalOf(stored, incoming, configured);
  if (refusal !== undefined) return refusal;
  // A bitmap that an audit saved is no record: the next pass finds in the Services what it marks.
  const record = stored?.allocator === 'table' ? stored : undefined;
  const { data = NOTHING, strikes = NO_STRIKES, holds = [] } = record ?? {};

  const toSet = subtract(incoming.data, data);
  const struck = intersect(incoming.data, union(strikes.once, strikes.twice));
  const { taken, leftOut } = holdsTaken(incoming, toSet, nowMs);
  const nextHolds = taken.reduce((all, { items, ...terms }) => withHold(all, items, terms), holds);
  const full = taken.length > 0 ? holdsFull(incoming.key, nextHolds) : undefined;
  if (full !== undefined) return full;
  return {
    key: incoming.key,
    range: configured,
    toSet,
    alreadySet: intersect(incoming.data, data),
    onlyHere: subtract(data, incoming.data),
    struck,
    holds: taken,
    holdsLeftOut: leftOut,
    changes: record === undefined || popCount(toSet) + popCount(struck) > 0,
    next: {
      range: configured,
      data: union(data, incoming.data),
      allocator: 'table',
      strikes: {
        ...strikes,
        once: subtract(strikes.once, incoming.data),
        twice: subtract(strikes.twice, incoming.data),
      },
      holds: nextHolds,
    },
  };
}

function refusalOf(
  stored: StoredRange | undefined,
  { key, allocator }: IncomingRange,
  configured: string,
): ExchangeError | undefined {
  if (allocator === 'apiserver') {
    return new ExchangeError(
      'NoRecord',
      `${key} of the file shows what Services claimed where the cluster's own API servers allocate: it is no record of allocations. Import what those API servers keep in etcd.`,
    );
  }
  if (stored?.allocator === 'table' && canonical(stored.range) !== canonical(configured)) {
    return new ExchangeError(
      'OtherRange',
      `${key} is stored for ${stored.range}, and the spec now has ${configured}: wait until an enforcing pass has saved the new range, then import.`,
    );
  }
  return undefined;
}

/** A hold of an item that is allocated here already does not apply. */
function holdsTaken(
  { range, holds }: IncomingRange,
  toSet: Uint8Array,
  nowMs: number,
): { readonly taken: readonly Hold[]; readonly leftOut: number } {
  const items = rangeItems(range);
  if (items instanceof ExchangeError) throw items;
  const taken = holds
    .filter((hold) => !isOver(hold, nowMs))
    .map((hold) => ({ ...hold, items: hold.items.filter((item) => items.has(toSet, item)) }))
    .filter((hold) => hold.items.length > 0);
  return { taken, leftOut: heldItems(holds) - heldItems(taken) };
}

function heldItems(holds: readonly Hold[]): number {
  return holds.reduce((sum, { items }) => sum + items.length, 0);
}

/** Why the holds do not fit; undefined when they do. */
function holdsFull(key: RangeKey, holds: readonly Hold[]): ExchangeError | undefined {
  const bytes = sizeOfHolds(holds);
  if (bytes <= MOST_HOLD_BYTES) return undefined;
  return new ExchangeError(
    'HoldsFull',
    `With the holds of the file, ${key} would have ${bytes} bytes of holds, and ${MOST_HOLD_BYTES} is the most: release holds here or there, or remove them from the file, and import again.`,
  );
}

function canonical(range: string): string | undefined {
  const items = rangeItems(range);
  return items instanceof ExchangeError ? undefined : items.range;
}

/** A range of the file, and its text in the spec. */
export interface PlacedRange {
  readonly incoming: IncomingRange;
  readonly configured: string;
}

/** Where each range of a file goes. Refusals: `OtherRange` for one that the cluster does not have, `NoRecord`. */
export function placeRanges(file: ExchangeFile, spec: ClusterSpec): readonly PlacedRange[] | ExchangeError {
  if (spec.allocator === 'apiserver') {
    return new ExchangeError(
      'NoRecord',
      `Cluster ${spec.name} has "allocator: apiserver": its own API servers allocate, and nothing that is imported here would be heeded. Say "allocator: table" in its spec first.`,
    );
  }
  const ranges = rangesOf(spec);
  const placed: PlacedRange[] = [];
  for (const incoming of incomingRanges(file, ranges)) {
    const found = ranges.find(({ key }) => key === incoming.key);
    if (found === undefined || canonical(found.configured) !== canonical(incoming.range))
      return otherRange(incoming.range, spec);
    placed.push({ incoming, configured: found.configured });
  }
  return placed;
}

/** A `RangeAllocation` does not name the range of the cluster: its text identifies it. */
function incomingRanges(file: ExchangeFile, ranges: readonly SpecRange[]): readonly IncomingRange[] {
  if (file.kind === 'ClusterRanges') return file.clusterRanges.ranges;
  const { range, data } = file.allocation;
  const found = ranges.find(({ configured }) => canonical(configured) === canonical(range));
  return [{ key: found?.key ?? RANGE_KEYS.primary, range, data, allocator: 'table', holds: [] }];
}

function otherRange(range: string, spec: ClusterSpec): ExchangeError {
  const own = rangesOf(spec).map(({ configured, key }) => `${configured} (${key})`);
  return new ExchangeError(
    'OtherRange',
    `The file is of ${range}, and cluster ${spec.name} has ${own.join(', ')}. Items are numbered by their range, so that it can only be imported into the same one.`,
  );
}

export function importWarnings(file: ExchangeFile, cluster: RegisteredCluster, nowMs: number): readonly string[] {
  return [...aboutFile(file, cluster.spec.name), ...aboutCluster(cluster, nowMs)];
}

function aboutFile(file: ExchangeFile, name: string): string[] {
  if (file.kind === 'ClusterRanges') {
    const { cluster, exportedAtMs } = file.clusterRanges;
    if (cluster === name) return [];
    return [`The file was exported from cluster ${cluster}, at ${new Date(exportedAtMs).toISOString()}.`];
  }
  const { range, createdAt } = file.allocation;
  const items = rangeItems(range);
  if (items instanceof ExchangeError || items.kind === 'ports') return [];
  const created = createdAt === undefined ? 'It has no creation time.' : `It was created at ${createdAt}.`;
  return [
    `Kubernetes 1.34 and later no longer write /registry/ranges/serviceips and /registry/ranges/secondaryserviceips: the copy of a cluster that was upgraded may be years old, and lack every address allocated since. ${created}`,
  ];
}

function aboutCluster({ spec, paused }: RegisteredCluster, nowMs: number): string[] {
  const warnings: string[] = [];
  if (spec.mode === 'observe') {
    warnings.push(
      `Cluster ${spec.name} has "mode: observe": nothing is allocated until it enforces and a pass has saved.`,
    );
  }
  if (paused !== undefined && paused.untilMs > nowMs) {
    warnings.push(
      `Cluster ${spec.name} is paused until ${new Date(paused.untilMs).toISOString()}: nothing is allocated until its passes resume.`,
    );
  }
  return warnings;
}
