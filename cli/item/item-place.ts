import { canonicalAddress, familyOf, parseAddress } from '../../lib/allocator/ip-address.ts';
import { ipNotInRange } from '../../lib/allocator/ip-range.ts';
import { isUsableIn, parseCidr } from '../../lib/allocator/network.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import type { ServiceCidrUsage } from '../../lib/cluster/service-cidr-usage.ts';
import { emptyRange } from '../../lib/range/stored-range.ts';
import type { ClusterSpec, Loop } from '../../lib/spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { boundedText } from '../../lib/util/values.ts';
import { CliError, EXIT, usageError } from '../errors.ts';

export const ITEM_NOUNS = { ip: 'cluster IP', port: 'node port' } as const;
export type ItemKind = keyof typeof ITEM_NOUNS;

export interface ItemPlace {
  readonly kind: ItemKind;
  /** The address or port as canonical text. */
  readonly item: string;
  readonly key: RangeKey;
  /** The range in the spec, or the network of a ServiceCIDR. */
  readonly range: string;
  readonly loop: Loop;
}

/** @throws CliError for an invalid item and, with upstream's message, for an item outside the range */
export function itemPlaceOf(spec: ClusterSpec, kind: ItemKind, text: string, served?: ServiceCidrUsage): ItemPlace {
  return kind === 'ip' ? placeOfAddress(spec, text, served) : placeOfPort(spec, text);
}

export function bitIn(range: string, { key, item }: Pick<ItemPlace, 'key' | 'item'>): number | undefined {
  const allocator = emptyRange(key, range);
  return isRefused(allocator) ? undefined : allocator.indexOf(item);
}

export function bandOf({ key, range, item }: ItemPlace): 'static' | 'dynamic' {
  const allocator = emptyRange(key, range);
  if (isRefused(allocator)) return 'dynamic';
  const { reserved } = allocator;
  return (allocator.indexOf(item) ?? reserved) < reserved ? 'static' : 'dynamic';
}

function placeOfAddress(spec: ClusterSpec, text: string, served: ServiceCidrUsage | undefined): ItemPlace {
  const item = canonicalAddress(text);
  if (item === undefined) throw usageError(`${JSON.stringify(boundedText(text, 80))} is not an IP address.`);
  const family = familyOf(item);
  const valid = served?.networks.map(({ cidr }) => cidr) ?? spec.serviceClusterIPRanges;
  // The ranges of the spec are searched too, because the run record of a cluster with many networks omits some networks.
  const range = [...valid, ...spec.serviceClusterIPRanges].find((cidr) => hasAddress(spec, cidr, item));
  const own = valid.filter((cidr) => parseCidr(cidr)?.family === family);
  if (range === undefined && own.length === 0) {
    throw new CliError(EXIT.findings, `Cluster ${spec.name} has no ${family} range, only ${valid.join(', ')}.`);
  }
  if (range === undefined) throw new CliError(EXIT.findings, ipNotInRange(item, own.join(', ')).message);
  const key = parseCidr(valid[0] ?? range)?.family === family ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
  return { kind: 'ip', item, key, range, loop: 'cluster-ip-repair' };
}

/** Returns whether an address can be allocated from a range. API servers also allocate addresses above the end of the bitmap. */
function hasAddress({ allocator }: ClusterSpec, cidr: string, item: string): boolean {
  if (allocator === 'table') return bitIn(cidr, { key: RANGE_KEYS.primary, item }) !== undefined;
  const [network, address] = [parseCidr(cidr), parseAddress(item)];
  return network !== undefined && address !== undefined && isUsableIn(network, address);
}

function placeOfPort(spec: ClusterSpec, text: string): ItemPlace {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw usageError(`${JSON.stringify(boundedText(text, 80))} is not a port: use a number from 1 to 65535.`);
  const item = String(port);
  const range = spec.serviceNodePortRange;
  const allocator = emptyRange(RANGE_KEYS.nodePorts, range);
  const refusal = isRefused(allocator) ? allocator : allocator.refusalIfOutside(item);
  if (refusal) throw new CliError(EXIT.findings, refusal.message);
  return { kind: 'port', item, key: RANGE_KEYS.nodePorts, range, loop: 'node-port-repair' };
}

/** Returns the name of a range without the prefix of its key, such as `serviceips` for `ranges/serviceips`. */
export function nameOfKey(key: RangeKey): string {
  return key.slice('ranges/'.length);
}
