import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../table/ranges.ts';
import { ExchangeError } from './errors.ts';
import type { ExchangeFile } from './exchange-file.ts';
import type { IncomingRange } from './plan-import.ts';
import { rangeItems } from './range-items.ts';

/** A range of the file, and its text in the spec. */
export interface PlacedRange {
  readonly incoming: IncomingRange;
  readonly configured: string;
}

/** The ranges that a spec asks for, by their keys. */
export function configuredRanges({
  serviceClusterIPRanges: [primary, secondary],
  serviceNodePortRange,
}: ClusterSpec): ReadonlyMap<RangeKey, string> {
  return new Map([
    [RANGE_KEYS.primary, primary],
    ...(secondary === undefined ? [] : [[RANGE_KEYS.secondary, secondary] as const]),
    [RANGE_KEYS.nodePorts, serviceNodePortRange],
  ]);
}

/** Where each range of a file goes. Refusals: `OtherRange` for one that the cluster does not have, `NoRecord`. */
export function placeRanges(file: ExchangeFile, spec: ClusterSpec): readonly PlacedRange[] | ExchangeError {
  if (spec.allocator === 'apiserver') {
    return new ExchangeError(
      'NoRecord',
      `Cluster ${spec.name} has "allocator: apiserver": its own API servers allocate, and nothing that is imported here would be heeded. Say "allocator: table" in its spec first.`,
    );
  }
  const configured = configuredRanges(spec);
  const placed: PlacedRange[] = [];
  for (const incoming of incomingRanges(file, configured)) {
    const range = configured.get(incoming.key);
    if (range === undefined || !isSame(range, incoming.range)) return otherRange(incoming.range, spec, configured);
    placed.push({ incoming, configured: range });
  }
  return placed;
}

/** A `RangeAllocation` does not say which range of the cluster it is: its text does. */
function incomingRanges(file: ExchangeFile, configured: ReadonlyMap<RangeKey, string>): readonly IncomingRange[] {
  if (file.kind === 'ClusterRanges') return file.clusterRanges.ranges;
  const { range, data } = file.allocation;
  const found = [...configured].find(([, text]) => isSame(text, range));
  return [{ key: found?.[0] ?? RANGE_KEYS.primary, range, data, allocator: 'table', holds: [] }];
}

function otherRange(range: string, { name }: ClusterSpec, configured: ReadonlyMap<RangeKey, string>): ExchangeError {
  return new ExchangeError(
    'OtherRange',
    `The file is of ${range}, and cluster ${name} has ${[...configured].map(([key, text]) => `${text} (${key})`).join(', ')}. Items are numbered by their range, so that it can only be imported into the same one.`,
  );
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [rangeItems(one), rangeItems(other)];
  return !(first instanceof ExchangeError) && !(second instanceof ExchangeError) && first.range === second.range;
}
