import { parseAddress } from '../../lib/allocator/ip-address.ts';
import { type Network, networkContains, parseCidr, rangeSize, usableSize } from '../../lib/allocator/network.ts';
import { reservedAddresses } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { fromBits, intersect, popCount, union } from '../../lib/allocator/snapshot-bytes.ts';
import type { FindingType } from '../../lib/cluster/finding.ts';
import { type ServiceCidrUsage, serviceCidrUsageIn } from '../../lib/cluster/service-cidr-usage.ts';
import { isOver } from '../../lib/range/hold.ts';
import { emptyRange } from '../../lib/range/stored-range.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { figureOf, RANGE_KEYS, type RangeKey, rangesOf, type SpecRange } from '../../lib/spec/spec-ranges.ts';
import type { RunRecord } from '../../lib/table/run-records.ts';
import { defined } from '../../lib/util/values.ts';
import type { RangeStatus } from './cluster-status.ts';
import { drawRange, drawUsage, type RangeLayout } from './range-map.ts';
import type { SavedRange, StatusInputs } from './read-inputs.ts';

const TITLES: Readonly<Record<RangeKey, string>> = {
  [RANGE_KEYS.primary]: 'cluster IPs',
  [RANGE_KEYS.secondary]: 'secondary cluster IPs',
  [RANGE_KEYS.nodePorts]: 'node ports',
};

/** Returns the status of each range of the spec. If a pass has read ServiceCIDRs, they replace the ranges of cluster IPs. */
export function rangeStatuses(inputs: StatusInputs, nowMs: number) {
  const served = serviceCidrStatuses(inputs);
  const ranges: RangeStatus[] = [...(served ?? [])];
  const unreadable: string[] = [];
  for (const range of rangesOf(inputs.cluster.spec)) {
    if (served !== undefined && range.loop === 'cluster-ip-repair') continue;
    const status = rangeStatus(range, inputs, nowMs);
    if (isRefused(status)) {
      unreadable.push(
        `Item ${inputs.cluster.spec.name}/${range.key} holds a range that does not parse: ${status.message}. It was not changed; correct it, or remove it to start again.`,
      );
    } else if (status !== undefined) ranges.push(status);
  }
  const isCut = (key: RangeKey) => {
    const record = inputs.records[key === RANGE_KEYS.nodePorts ? 'node-port-repair' : 'cluster-ip-repair'];
    return record?.findingCounts !== undefined;
  };
  return {
    ranges: ranges.map((range) => (isCut(range.key) ? { ...range, atLeast: true as const } : range)),
    unreadable,
  };
}

function rangeStatus(range: SpecRange, inputs: StatusInputs, nowMs: number): RangeStatus | Refusal | undefined {
  const record = inputs.records[range.loop];
  const saved = inputs.ranges?.find(({ key }) => key === range.key);
  const counted = countedStatus(range, inputs, record);
  if (saved === undefined || (counted !== undefined && isOutdated(range, saved, inputs.cluster.spec))) return counted;
  return savedStatus(range, saved, inputs, nowMs);
}

/** Returns whether the saved range is outdated: another allocator saved it, or API servers allocate and the range changed. */
function isOutdated({ configured }: SpecRange, { stored }: SavedRange, { allocator }: ClusterSpec): boolean {
  return stored.allocator !== allocator || (allocator === 'apiserver' && stored.range !== configured);
}

function savedStatus(
  { key, configured, loop }: SpecRange,
  { stored, savedAtMs }: SavedRange,
  { cluster, records }: StatusInputs,
  nowMs: number,
): RangeStatus | Refusal {
  const range = textRange(key, stored.range || configured);
  if (isRefused(range)) return range;
  const isOfTable = stored.allocator === 'table';
  const isCurrent = stored.generation === cluster.rangesGeneration && range.spec === configured;
  const holds = stored.holds.filter((hold) => !isOver(hold, nowMs));
  const held = intersect(range.bitsOf(holds.flatMap(({ items }) => items)), stored.data);
  const leaking = intersect(union(stored.strikes.once, stored.strikes.twice), stored.data);
  const duplicates = range.bitsOf(itemsOf(records[loop], 'duplicate'));
  const map = drawRange(range, { U: stored.data, H: held, L: leaking, D: duplicates });
  return countedRange({
    key,
    range: range.spec,
    ...(range.spec !== configured && { specRange: configured }),
    allocator: stored.allocator,
    ...(cluster.spec.allocator === 'table' && { ready: isOfTable && isCurrent }),
    savedAtMs,
    used: popCount(stored.data),
    capacity: range.max,
    reserved: range.reserved,
    leaking: popCount(leaking),
    held: popCount(held),
    duplicates: popCount(duplicates),
    holds,
    ...defined({ map }),
  });
}

/** Returns the counts of the last pass, unless the pass counted a range of another size. */
function countedStatus(
  { key, configured }: SpecRange,
  { cluster, ranges }: StatusInputs,
  record: RunRecord | undefined,
): RangeStatus | undefined {
  const figure = (name: string) => record?.counts[figureOf(key, name)];
  const used = figure('allocated');
  const capacity = figure('capacity');
  const range = textRange(key, configured);
  if (used === undefined || isRefused(range) || capacity !== range.max) return undefined;
  const { allocator } = cluster.spec;
  return countedRange({
    key,
    range: range.spec,
    allocator,
    ...(allocator === 'table' && ranges !== undefined && { ready: false }),
    used,
    capacity,
    reserved: range.reserved,
    leaking: figure('mayHaveLeaked') ?? 0,
    held: figure('held') ?? 0,
    duplicates: popCount(range.bitsOf(itemsOf(record, 'duplicate'))),
  });
}

type Counted = Pick<RangeStatus, 'key' | 'range' | 'allocator' | 'used' | 'capacity'>;

/** Adds the title and the figures. The percentage is rounded down to a tenth: only a full range has 100. */
function countedRange(counted: Counted & Partial<RangeStatus>): RangeStatus {
  const { key, range, used, capacity, ...rest } = counted;
  const free = Math.max(0, capacity - used);
  const usedPercent = capacity > 0 ? Math.floor((used / capacity) * 1000) / 10 : 0;
  const none = { reserved: 0, leaking: 0, held: 0, duplicates: 0, holds: [] };
  return { key, title: TITLES[key], range, used, capacity, free, usedPercent, ...none, ...rest };
}

function itemsOf(record: RunRecord | undefined, wanted: FindingType): string[] {
  return (record?.findings ?? []).flatMap(({ type, item }) => (type === wanted ? (item ?? []) : []));
}

export interface TextRange extends RangeLayout {
  readonly spec: string;
  /** Returns a bitmap of the items. Ignores items outside the range. */
  bitsOf(texts: readonly string[]): Uint8Array;
}

export function textRange(key: RangeKey, text: string): TextRange | Refusal {
  const range = emptyRange(key, text);
  if (isRefused(range)) return range;
  const { spec, max, reserved } = range;
  const family = parseCidr(text)?.family;
  const before = family === undefined ? 0 : 1;
  return {
    spec,
    max,
    reserved,
    before,
    after: family === 'IPv4' ? 1 : 0,
    first: max > 0 ? range.itemAt(-before) : '',
    bitsOf: (texts) => fromBits(texts.flatMap((text) => range.indexOf(text) ?? [])),
  };
}

/**
 * Returns the usage of each ServiceCIDR that the last pass found, preceded by the total of a family with several ServiceCIDRs.
 * Returns `undefined` if the table allocates or no pass read ServiceCIDRs.
 */
function serviceCidrStatuses(inputs: StatusInputs): RangeStatus[] | undefined {
  const { cluster, records } = inputs;
  const record = records['cluster-ip-repair'];
  const usage = cluster.spec.allocator === 'apiserver' ? serviceCidrUsageIn(record?.state) : undefined;
  return usage?.sums.flatMap((sum, index) => {
    const key = index === 0 ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
    const own = usage.networks.flatMap((one) => {
      const network = parseCidr(one.cidr);
      return network?.family === sum.family ? [{ ...one, network }] : [];
    });
    const statuses = own.map((one) => networkStatus(key, one, record, inputs.ranges !== undefined));
    if (sum.networks === 1) return statuses;
    const parts = statuses.map(
      (one): RangeStatus => ({ ...one, title: `${one.title} of ServiceCIDR ${one.serviceCidr}`, part: true }),
    );
    return [sumStatus(key, sum, statuses), ...parts];
  });
}

type Sum = ServiceCidrUsage['sums'][number];
type CidrUsage = ServiceCidrUsage['networks'][number] & { readonly network: Network };

function networkStatus(
  key: RangeStatus['key'],
  { name, network, ready, used, cells }: CidrUsage,
  record: RunRecord | undefined,
  withMap: boolean,
): RangeStatus {
  const isIn = (text: string) => {
    const address = parseAddress(text);
    return address !== undefined && networkContains(network, address);
  };
  const items = (type: FindingType) => [...new Set(itemsOf(record, type))].filter(isIn);
  const duplicates = items('duplicate');
  const reserved = reservedAddresses(Number(rangeSize(network)));
  const map = withMap ? drawUsage(network, cells, reserved, duplicates) : undefined;
  return countedRange({
    key,
    range: network.text,
    serviceCidr: name,
    ...(!ready && { ready }),
    allocator: 'apiserver',
    used,
    capacity: usableSize(network),
    reserved,
    leaking: items('leakedRecord').length,
    duplicates: duplicates.length,
    ...defined({ map }),
  });
}

function sumStatus(
  key: RangeStatus['key'],
  { family, networks, used, capacity }: Sum,
  parts: readonly RangeStatus[],
): RangeStatus {
  const total = (figure: 'leaking' | 'duplicates') => parts.reduce((sum, part) => sum + part[figure], 0);
  return countedRange({
    key,
    range: `${networks} ServiceCIDRs of ${family}`,
    sumOf: networks,
    allocator: 'apiserver',
    used,
    capacity,
    leaking: total('leaking'),
    duplicates: total('duplicates'),
  });
}
