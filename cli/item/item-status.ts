import { hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../../lib/cluster/cluster-spec.ts';
import { type Hold, holdOn } from '../../lib/cluster/hold.ts';
import type { StoredRange } from '../../lib/cluster/stored-range.ts';
import { type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { type RecordedFinding, type RunRecord, readRunRecord } from '../../lib/table/run-records.ts';
import { bandOf, bitIn, type ItemPlace } from './item-place.ts';

/** What is known of the range of an item. */
export interface ItemFacts {
  readonly cluster: RegisteredCluster;
  readonly place: ItemPlace;
  /** Absent: no pass has saved the range. */
  readonly saved?: { readonly stored: StoredRange; readonly savedAtMs: number };
  /** Of the loop that repairs the range. */
  readonly record?: RunRecord;
  /** Whether passes are held, those of this cluster or of all. */
  readonly paused: boolean;
  /** `namespace/name` of those that have it, once for each claim. Absent: nobody asked, or the API server did not say. */
  readonly services?: readonly string[];
}

/** Everything about one address or port. */
export interface ItemStatus {
  readonly place: ItemPlace;
  readonly allocator: AllocatorOfRecord;
  /** `next` gives from the static band only when the dynamic one is full. */
  readonly band: 'static' | 'dynamic';
  /** As the record has it: this table, or the API servers. `unknown`: no pass has saved, and no API server was asked. */
  readonly state: 'free' | 'taken' | 'unknown';
  /** Whether anything can be allocated in its range. Absent: the API servers allocate. */
  readonly ready?: boolean;
  readonly savedAtMs?: number;
  readonly services?: readonly string[];
  readonly hold?: Hold;
  readonly leak?: Leak;
  /** What the last pass said of it. */
  readonly findings: readonly RecordedFinding[];
  /** What is wrong about it by now, in words. */
  readonly faults: readonly string[];
}

/** An item without a Service or a hold, as far as is known. */
export interface Leak {
  readonly strikes: 0 | 1 | 2;
  /** It is freed at this time at the earliest. Absent: passes free nothing. */
  readonly freedAtEarliestMs?: number;
}

const STRIKES = 3;

export function workOutItem(facts: ItemFacts, nowMs: number): ItemStatus {
  const { cluster, place, saved, record, services } = facts;
  const { allocator } = cluster.spec;
  // What another allocator's Services looked like is no record of this one.
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
    ...(services && { services }),
    ...(hold && { hold }),
    ...(leak && { leak }),
    findings: record?.findings.filter(({ item }) => item === place.item) ?? [],
    faults: faultsOf(facts, taken),
  };
}

/** Where the API servers allocate, Services say more than the picture of the last pass. */
function isTaken({ cluster, place, services }: ItemFacts, stored: StoredRange | undefined): boolean | undefined {
  if (cluster.spec.allocator === 'apiserver' && services !== undefined) return services.length > 0;
  const bit = stored && bitIn(stored.range, place);
  return stored === undefined || bit === undefined ? undefined : hasBit(stored.data, bit);
}

function isReady({ cluster, place }: ItemFacts, stored: StoredRange | undefined): boolean {
  return stored?.generation === cluster.rangesGeneration && stored.range === place.range;
}

/** Strikes are the table's, and only of what nobody has. */
function leakOf(
  { cluster: { spec }, paused, place, record, services }: ItemFacts,
  stored: StoredRange,
  nowMs: number,
): Leak | undefined {
  if (spec.allocator !== 'table' || holdOn(stored.holds, place.item) !== undefined) return undefined;
  // After passes that only observed, strikes count from zero.
  const fallen = record?.observed ? 0 : strikesOn(stored, place);
  if (services === undefined ? fallen === 0 : services.length > 0) return undefined;
  if (spec.mode === 'observe' || paused) return { strikes: fallen };
  const apartMs = leastBetweenStrikesMs(spec.intervalSeconds[place.loop] * 1000);
  const { last } = stored.strikes;
  const nextMs = Math.max(nowMs, last === undefined ? nowMs : last.atMs + apartMs);
  return { strikes: fallen, freedAtEarliestMs: nextMs + (STRIKES - 1 - fallen) * apartMs };
}

function strikesOn({ range, strikes: { once, twice } }: StoredRange, place: ItemPlace): Leak['strikes'] {
  const bit = bitIn(range, place);
  if (bit === undefined) return 0;
  if (hasBit(twice, bit)) return 2;
  return hasBit(once, bit) ? 1 : 0;
}

/** As `mayStrike` has it. */
function leastBetweenStrikesMs(intervalMs: number): number {
  return (intervalMs * 2) / 3;
}

function faultsOf({ cluster, place, services = [] }: ItemFacts, taken: boolean | undefined): string[] {
  const { name, allocator } = cluster.spec;
  const isUnknown = allocator === 'table' && services.length > 0 && taken === false;
  return [
    ...(services.length > 1 ? [`it is claimed ${services.length} times, and may be once`] : []),
    ...(isUnknown
      ? [
          `a Service has it, and the table does not know: the next enforcing pass of ${place.loop} in ${name} records it`,
        ]
      : []),
  ];
}

/** What the table knows of the range of an item. @throws TableError of what cannot be read. */
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
