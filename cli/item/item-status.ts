import { hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import { type ServiceCidrUsage, serviceCidrUsageIn } from '../../lib/cluster/service-cidr-usage.ts';
import { type Hold, holdOn } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { AllocatorOfRecord, ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { type RecordedFinding, type RunRecord, readRunRecord } from '../../lib/table/run-records.ts';
import { defined } from '../../lib/util/values.ts';
import { type ItemClaims, ipAddressFault } from './claims.ts';
import { bandOf, bitIn, type ItemPlace } from './item-place.ts';

export interface ItemFacts {
  readonly cluster: RegisteredCluster;
  readonly place: ItemPlace;
  /** The saved range. Absent if no pass has saved the range. */
  readonly saved?: { readonly stored: StoredRange; readonly item: Pick<Item, 'updatedAtMs'> };
  readonly record?: RunRecord;
  /** The IPAddress and the hold of the item, and the Services that use the item. Absent if Services were not read. */
  readonly claims?: ItemClaims;
}

export interface ItemStatus extends ItemPlace, Partial<ItemClaims> {
  readonly allocator: AllocatorOfRecord;
  /** The band. A Service that requests no value gets an item of the static band only if the dynamic band is full. */
  readonly band: 'static' | 'dynamic';
  readonly state: 'free' | 'taken' | 'unknown';
  /** True if an enforcing pass has saved the current range. Absent if the API servers allocate. */
  readonly ready?: boolean;
  readonly savedAtMs?: number;
  readonly hold?: Hold;
  /** The strikes of an item without a Service or a hold. The third strike frees the item. */
  readonly strikes?: 0 | 1 | 2;
  readonly findings: readonly RecordedFinding[];
  readonly faults: readonly string[];
}

export function itemStatus(facts: ItemFacts): ItemStatus {
  const { cluster, place, record, claims } = facts;
  const { allocator } = cluster.spec;
  const kept = savedOf(facts);
  const taken = isTaken(facts, kept?.stored);
  const isCurrent = kept?.stored.generation === cluster.rangesGeneration;
  const hold = claims?.hold ?? (kept && holdOn(kept.stored.holds, place.item));
  const strikes = kept && taken && hold === undefined ? strikesOf(facts, kept.stored) : undefined;
  return {
    ...place,
    ...claims,
    allocator,
    band: bandOf(place),
    state: taken === undefined ? 'unknown' : taken ? 'taken' : 'free',
    ...(allocator === 'table' && { ready: isCurrent && kept?.stored.range === place.range }),
    ...defined({ savedAtMs: kept?.item.updatedAtMs, hold, strikes }),
    findings: record?.findings.filter(({ item }) => item === place.item) ?? [],
    faults: faultsOf(facts, taken),
  };
}

/** Returns the saved range; `undefined` if another allocator saved it, or if the bitmap of a ServiceCIDR lacks the item. */
function savedOf({ cluster, place, saved }: ItemFacts): ItemFacts['saved'] {
  const { allocator } = cluster.spec;
  if (saved?.stored.allocator !== allocator) return undefined;
  return allocator === 'table' || bitIn(saved.stored.range, place) !== undefined ? saved : undefined;
}

/** Returns whether the item is allocated. If API servers allocate, Services and the IPAddress decide: the bitmap may be old. */
function isTaken({ cluster, place, claims }: ItemFacts, stored: StoredRange | undefined): boolean | undefined {
  if (cluster.spec.allocator === 'apiserver' && claims !== undefined) {
    return claims.services.length > 0 || claims.ipAddress !== undefined;
  }
  const bit = stored && bitIn(stored.range, place);
  return stored === undefined || bit === undefined ? undefined : hasBit(stored.data, bit);
}

/**
 * Returns the strikes of the item; `undefined` if a Service has the item, or API servers allocate. If Services were not read,
 * returns `undefined` instead of 0. After a pass in mode observe, strikes start from zero.
 */
function strikesOf({ cluster, place, record, claims }: ItemFacts, { range, strikes }: StoredRange) {
  if (cluster.spec.allocator !== 'table' || (claims !== undefined && claims.services.length > 0)) return undefined;
  const bit = record?.observed ? undefined : bitIn(range, place);
  if (bit !== undefined && hasBit(strikes.twice, bit)) return 2;
  if (bit !== undefined && hasBit(strikes.once, bit)) return 1;
  return claims === undefined ? undefined : 0;
}

function faultsOf({ cluster, place, claims = { services: [] } }: ItemFacts, taken: boolean | undefined): string[] {
  const { services } = claims;
  const { name, allocator } = cluster.spec;
  const isUnknown = allocator === 'table' && services.length > 0 && taken === false;
  const faults = [
    services.length > 1 && `${services.length} Services have it, and only one may`,
    isUnknown &&
      `a Service has it, and it is not allocated in the table: the next enforcing pass of ${place.loop} in ${name} allocates it`,
    ipAddressFault(claims),
  ];
  return faults.filter((fault) => typeof fault === 'string');
}

export async function readItemFacts(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  place: ItemPlace,
): Promise<ItemFacts> {
  const { name } = cluster.spec;
  const [run, read] = await Promise.all([readRunRecord(table, name, place.loop), readRange(table, name, place.key)]);
  return { cluster, place, ...defined({ saved: read, record: run?.record }) };
}

/** Returns the ServiceCIDRs that the last pass found, if API servers allocate from them. @throws TableError */
export async function readServedRanges(
  table: KeyValueTable,
  { name, allocator }: ClusterSpec,
): Promise<ServiceCidrUsage | undefined> {
  const run = allocator === 'apiserver' ? await readRunRecord(table, name, 'cluster-ip-repair') : undefined;
  return serviceCidrUsageIn(run?.record.state);
}
