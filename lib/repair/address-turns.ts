import * as z from 'zod/mini';
import type { FindingType } from '../cluster/finding.ts';
import type { IPAddressRecord } from '../cluster/kubernetes-objects.ts';
import type { AddressFault } from './address-faults.ts';

/**
 * A pass deletes or replaces an IPAddress only if the IPAddress is at least this old, and a pass saw its fault at least this long
 * ago. An API server creates the IPAddress before it stores the Service, in one request, which takes at most 60 s.
 */
const SETTLED_AFTER_MS = 65_000;
/**
 * The maximum number of faults that a pass corrects. A created IPAddress counts as a fraction of one (`CREATED_FOR_ONE`). A pass
 * also lists at most this many faults that have no correction, and saves at most this many uids.
 */
export const MOST_FAULTS = 200;
/** This many creations of IPAddresses count as one correction, so a pass makes more: the addresses could be allocated again. */
const CREATED_FOR_ONE = 5;
/** A uid of Kubernetes has 36 characters. An IPAddress with a longer uid is never deleted. */
const LONGEST_UID = 64;

const memoryShape = z.object({
  /** The time when a pass first saw each IPAddress that a pass might delete, by uid (ms, table's clock). */
  seen: z.record(z.string(), z.number()),
  /** The key of the last correction, if an error ended the pass or too many faults exist. The next pass begins after this key. */
  turn: z.exactOptional(z.string()),
});

/** The faults of IPAddresses that earlier passes saw, saved in the run record. */
export type AddressMemory = Readonly<z.infer<typeof memoryShape>>;

/** Returns the faults that earlier passes saved in a run record's state (`AddressMemory`), or none if the state contains none. */
export function addressMemoryIn(state: unknown): AddressMemory {
  return memoryShape.safeParse(Object(state)['addresses']).data ?? { seen: {} };
}

export interface Clocks {
  /** The time by the table's clock. */
  readonly nowMs: number;
  /** The time by the clock of the API servers; `undefined` if their replies have no time. */
  readonly servedAtMs: number | undefined;
}

/** Returns true if the request that created an IPAddress has certainly ended. */
function isSettled({ uid, createdAtMs }: IPAddressRecord, seen: ReadonlyMap<string, number>, clocks: Clocks): boolean {
  const seenAtMs = seen.get(uid) ?? Number.POSITIVE_INFINITY;
  return clocks.nowMs - seenAtMs >= SETTLED_AFTER_MS && isOld({ createdAtMs }, clocks);
}

/** Returns whether an IPAddress is older than any request that is still running, by the clock of the API servers. */
export function isOld({ createdAtMs }: Pick<IPAddressRecord, 'createdAtMs'>, { nowMs, servedAtMs }: Clocks): boolean {
  return (servedAtMs ?? nowMs) - createdAtMs >= SETTLED_AFTER_MS;
}

interface ChosenFaults {
  /** The faults to report, and to correct if they have a correction. */
  readonly listed: readonly AddressFault[];
  /** The number of reported faults that are not in `listed`, by type. */
  readonly unlisted: ReadonlyMap<FindingType, number>;
  readonly memory: AddressMemory;
}

/**
 * Chooses the faults of this pass. Faults without a correction have a separate limit. If there are too many corrections, the next
 * pass continues after the last correction of this pass. So each correction is tried within a few passes, even if others fail.
 */
export function chooseFaults(faults: Iterable<AddressFault>, memory: AddressMemory, clocks: Clocks): ChosenFaults {
  const all = [...faults];
  const fixed = all.filter(({ correction }) => correction === 'none');
  const correctable = all.filter(({ correction }) => correction !== 'none');
  const before = new Map(Object.entries(memory.seen));
  const isReady = ({ record }: AddressFault) => record === undefined || isSettled(record, before, clocks);
  const ready = inTurn(correctable, memory.turn).filter(isReady);
  const corrected = inOnePass(ready);
  const last = corrected.at(-1);
  const turn = last === undefined ? memory.turn : turnKey(last);
  const { seen, unseen } = sightings(inTurn(correctable, turn), before, clocks.nowMs);
  const listed = new Set([...fixed.slice(0, MOST_FAULTS), ...corrected]);
  return {
    listed: memory.turn === undefined ? all.filter((fault) => listed.has(fault)) : [...listed],
    unlisted: countByType([...fixed, ...ready, ...unseen].filter((fault) => !listed.has(fault))),
    memory: { seen, ...(turn !== undefined && correctable.length > MOST_FAULTS && { turn }) },
  };
}

function inOnePass(faults: readonly AddressFault[]): readonly AddressFault[] {
  let left = MOST_FAULTS * CREATED_FOR_ONE;
  const end = faults.findIndex(({ correction }) => {
    left -= correction === 'create' ? 1 : CREATED_FOR_ONE;
    return left < 0;
  });
  return end < 0 ? faults : faults.slice(0, end);
}

function countByType(faults: readonly AddressFault[]): ReadonlyMap<FindingType, number> {
  const counts = new Map<FindingType, number>();
  for (const { type } of faults) if (type !== undefined) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}

/** Returns the `AddressMemory` of a pass that this fault ended. The next pass begins after this fault, which may fail again. */
export function endedAt(memory: AddressMemory, fault: AddressFault): AddressMemory {
  return { ...memory, turn: turnKey(fault) };
}

/**
 * Returns `seen`, the uids to save, each with the time of its first sighting; and `unseen`, the faults whose uid is new but is
 * not saved, because the uid is too long or the limit is reached.
 */
function sightings(faults: readonly AddressFault[], before: ReadonlyMap<string, number>, nowMs: number) {
  const seen = new Map<string, number>();
  const unseen: AddressFault[] = [];
  for (const fault of faults) {
    const uid = fault.record?.uid;
    if (uid === undefined || seen.has(uid)) continue;
    if (seen.size < MOST_FAULTS && uid.length <= LONGEST_UID) seen.set(uid, before.get(uid) ?? nowMs);
    else if (!before.has(uid)) unseen.push(fault);
  }
  return { seen: Object.fromEntries(seen), unseen };
}

/** Returns the faults sorted by key, beginning after `turn`; unsorted if there is no `turn` and `MOST_FAULTS` is not exceeded. */
function inTurn(faults: readonly AddressFault[], turn: string | undefined): readonly AddressFault[] {
  if (faults.length <= MOST_FAULTS && turn === undefined) return faults;
  const sorted = faults
    .map((fault) => ({ key: turnKey(fault), fault }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
  const next = turn === undefined ? 0 : sorted.findIndex(({ key }) => key > turn);
  const start = Math.max(0, next);
  return [...sorted.slice(start), ...sorted.slice(0, start)].map(({ fault }) => fault);
}

function turnKey({ item, service = '', correction }: AddressFault): string {
  return `${item} ${correction} ${service}`;
}
