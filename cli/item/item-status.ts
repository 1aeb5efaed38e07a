import { hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../../lib/cluster/cluster-spec.ts';
import { type Hold, holdOn } from '../../lib/cluster/hold.ts';
import type { StoredRange } from '../../lib/cluster/stored-range.ts';
import { type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { type RecordedFinding, type RunRecord, readRunRecord } from '../../lib/table/run-records.ts';
import { type ItemClaims, ipAddressFault } from './claims.ts';
import { bandOf, bitIn, type ItemPlace } from './item-place.ts';

/** What the table and the API server contain about an item. */
export interface ItemFacts {
  readonly cluster: RegisteredCluster;
  readonly place: ItemPlace;
  /** Absent: no pass has saved the range. */
  readonly saved?: { readonly stored: StoredRange; readonly savedAtMs: number };
  /** Of the loop that repairs the range. */
  readonly record?: RunRecord;
  /** Whether the passes of this cluster are paused. */
  readonly paused: boolean;
  /** Absent: Services were not read. */
  readonly claims?: ItemClaims;
}

/** Everything about one address or port. */
export interface ItemStatus {
  readonly place: ItemPlace;
  readonly allocator: AllocatorOfRecord;
  /** `next` gives from the static band only when the dynamic one is full. */
  readonly band: 'static' | 'dynamic';
  /** `unknown`: no pass has saved the range, and Services were not read. */
  readonly state: 'free' | 'taken' | 'unknown';
  /** Whether anything can be allocated in its range. Absent: the API servers allocate. */
  readonly ready?: boolean;
  readonly savedAtMs?: number;
  readonly claims?: ItemClaims;
  readonly hold?: Hold;
  readonly leak?: Leak;
  /** Findings of the last pass about it. */
  readonly findings: readonly RecordedFinding[];
  /** What is wrong now. */
  readonly faults: readonly string[];
}

/** An item without a Service or a hold. */
export interface Leak {
  readonly strikes: 0 | 1 | 2;
  /** The earliest time at which it is freed. Absent: passes free nothing. */
  readonly freedAtEarliestMs?: number;
}

const STRIKES = 3;

/** Returns the status of an item, from what was read. */
export function itemStatus(facts: ItemFacts, nowMs: number): ItemStatus {
  const { cluster, place, saved, record, claims } = facts;
  const { allocator } = cluster.spec;
  // A range that another allocator saved is ignored.
  const kept = saved?.stored.allocator === allocator ? saved : undefined;
  const taken = isTaken(facts, kept?.stored);
  const hold = kept && holdOn(kept.stored.holds, place.item);
  const leak = kept && taken ? leakOf(facts, kept.stored, nowMs) : undefined;
  return {
    place,
    allocator,
    band: bandOf(place),
    state: taken === undefined ? 'unknown' : taken ? 'taken' : 'free',
    ...(allocator === 'table' && { ready: isReady(facts, kept?.stored) }),
    ...(kept && { savedAtMs: kept.savedAtMs }),
    ...(claims && { claims }),
    ...(hold && { hold }),
    ...(leak && { leak }),
    findings: record?.findings.filter(({ item }) => item === place.item) ?? [],
    faults: faultsOf(facts, taken),
  };
}

/** Where the API servers allocate, Services are newer than the usage bitmap of the last pass. */
function isTaken({ cluster, place, claims }: ItemFacts, stored: StoredRange | undefined): boolean | undefined {
  if (cluster.spec.allocator === 'apiserver' && claims !== undefined) return claims.services.length > 0;
  const bit = stored && bitIn(stored.range, place);
  return stored === undefined || bit === undefined ? undefined : hasBit(stored.data, bit);
}

function isReady({ cluster, place }: ItemFacts, stored: StoredRange | undefined): boolean {
  return stored?.generation === cluster.rangesGeneration && stored.range === place.range;
}

/** Only the table counts strikes. */
function leakOf(
  { cluster: { spec }, paused, place, record, claims }: ItemFacts,
  stored: StoredRange,
  nowMs: number,
): Leak | undefined {
  if (spec.allocator !== 'table' || holdOn(stored.holds, place.item) !== undefined) return undefined;
  // After passes that only observed, strikes count from zero.
  const strikes = record?.observed ? 0 : strikesOn(stored, place);
  if (claims === undefined ? strikes === 0 : claims.services.length > 0) return undefined;
  if (spec.mode === 'observe' || paused) return { strikes };
  const apartMs = leastBetweenStrikesMs(spec.intervalSeconds[place.loop] * 1000);
  const { last } = stored.strikes;
  const nextMs = Math.max(nowMs, last === undefined ? nowMs : last.atMs + apartMs);
  return { strikes, freedAtEarliestMs: nextMs + (STRIKES - 1 - strikes) * apartMs };
}

function strikesOn({ range, strikes: { once, twice } }: StoredRange, place: ItemPlace): Leak['strikes'] {
  const bit = bitIn(range, place);
  if (bit === undefined) return 0;
  if (hasBit(twice, bit)) return 2;
  return hasBit(once, bit) ? 1 : 0;
}

/** As in `mayStrike`. */
function leastBetweenStrikesMs(intervalMs: number): number {
  return (intervalMs * 2) / 3;
}

function faultsOf({ cluster, place, claims = { services: [] } }: ItemFacts, taken: boolean | undefined): string[] {
  const { services } = claims;
  const ipAddress = ipAddressFault(claims);
  const { name, allocator } = cluster.spec;
  const isUnknown = allocator === 'table' && services.length > 0 && taken === false;
  return [
    ...(services.length > 1 ? [`${services.length} Services have it, and only one may`] : []),
    ...(isUnknown
      ? [
          `a Service has it, and it is not allocated in the table: the next enforcing pass of ${place.loop} in ${name} allocates it`,
        ]
      : []),
    ...(ipAddress === undefined ? [] : [ipAddress]),
  ];
}

/** Reads what the table contains about an item. @throws TableError */
export async function readItemFacts(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  place: ItemPlace,
  nowMs: number,
): Promise<ItemFacts> {
  const { name } = cluster.spec;
  const [pausedAll, run, read] = await Promise.all([
    readPauseOfAll(table),
    readRunRecord(table, name, place.loop),
    readRange(table, name, place.key),
  ]);
  return {
    cluster,
    place,
    paused: [cluster.paused, pausedAll].some((pause) => pause !== undefined && pause.untilMs > nowMs),
    ...(read && { saved: { stored: read.stored, savedAtMs: read.item.updatedAtMs } }),
    ...(run && { record: run.record }),
  };
}
