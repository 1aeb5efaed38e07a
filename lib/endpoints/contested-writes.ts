import * as z from 'zod/mini';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';

const ownWriteShape = z.object({
  wanted: z.string(),
  atMs: z.number(),
  passesSince: z.number(),
  /** resourceVersions of Endpoints and EndpointSlice as our write left them. */
  versions: z.readonly(z.array(z.string())),
});

const contestShape = z.object({
  /** When the objects were last seen changed by the other writer. */
  lastSeenMs: z.number(),
  nextWriteMs: z.number(),
  delayMs: z.number(),
});

const stateShape = z.object({
  /** Addresses and ports that the last pass wanted published, as one text. */
  wanted: z.exactOptional(z.string()),
  lastWrite: z.exactOptional(z.readonly(ownWriteShape)),
  contest: z.exactOptional(z.readonly(contestShape)),
});

/** Our last correction of what another writer had changed, so that the next passes see whether it was undone. */
type OwnWrite = Readonly<z.infer<typeof ownWriteShape>>;
/** Another writer writes the same objects. */
type Contest = Readonly<z.infer<typeof contestShape>>;
/** Kept from pass to pass; the same as long as nothing happens, so that it need not be saved again. */
export type ContestState = Readonly<z.infer<typeof stateShape>>;

export interface ContestObservation {
  readonly wanted: string;
  /** Whether the objects differ from what is wanted. */
  readonly differs: boolean;
  /** resourceVersions as they were read; empty text for an object that is not there. */
  readonly versions: readonly string[];
  /** The objects publish no address, or one whose lease is known to have ended: that is never left. */
  readonly urgent: boolean;
  readonly nowMs: number;
  readonly intervalMs: number;
}

export interface ContestVerdict {
  readonly state: ContestState;
  /** This pass wants what the last one wrote: another writer changed the objects. */
  readonly corrects: boolean;
  /** The write would only contest, and its time has not come yet. */
  readonly withhold: boolean;
  /** Another writer undid what we wrote. */
  readonly twoOwners: boolean;
}

const PASSES_TO_BE_UNDONE = 2;
/** Ticks that come this much later prove nothing. */
const INTERVALS_TO_BE_UNDONE = 6;
const LONGEST_DELAY_MS = 600_000;
const QUIET_MS = 600_000;

/**
 * What another writer changed is corrected at once. When that is undone within two ticks, there are two owners: from then on
 * writes that only contest wait, each twice as long as the one before, until the objects were unchanged for ten minutes. A
 * write that adds or removes an address does not contest.
 */
export function judgeContest(before: ContestState, observation: ContestObservation): ContestVerdict {
  const { nowMs, differs, wanted } = observation;
  const lastWrite = counted(before, observation);
  const corrects = differs && before.wanted === wanted;
  const undone = corrects && lastWrite !== undefined && !sameVersions(lastWrite.versions, observation.versions);
  const seenAgain = before.contest && { ...before.contest, lastSeenMs: nowMs };
  const contest = undone ? (seenAgain ?? begun(lastWrite, observation)) : stillOn(before.contest, observation);
  const remembered = contest !== undefined || !isOld(lastWrite);
  return {
    state: { wanted, ...(lastWrite && remembered && { lastWrite }), ...(contest && { contest }) },
    corrects,
    withhold: undone && contest !== undefined && !observation.urgent && nowMs < contest.nextWriteMs,
    twoOwners: undone && contest !== undefined,
  };
}

/** The state after our write was made. A write that contested doubles the wait for the next. */
export function afterWrite(
  { state: { contest }, corrects, twoOwners }: ContestVerdict,
  { wanted, versions, nowMs }: Pick<ContestObservation, 'wanted' | 'versions' | 'nowMs'>,
): ContestState {
  if (!corrects && contest === undefined) return { wanted };
  const lastWrite: OwnWrite = { wanted, versions, atMs: nowMs, passesSince: 0 };
  if (contest === undefined) return { wanted, lastWrite };
  const delayMs = twoOwners ? Math.min(contest.delayMs * 2, LONGEST_DELAY_MS) : contest.delayMs;
  return { wanted, lastWrite, contest: { ...contest, delayMs, nextWriteMs: nowMs + delayMs } };
}

/** Returns the other writer that wrote the objects last, by their managed fields. */
export function lastManager(objects: readonly (KubernetesObject | undefined)[], own: string): string | undefined {
  const fields = objects.flatMap((object) => object?.metadata.managedFields ?? []);
  const others = fields.filter(({ manager }) => manager !== own);
  return others.toSorted((one, other) => (other.time ?? '').localeCompare(one.time ?? ''))[0]?.manager;
}

/** State of another layout counts as none: a contest shows again within two ticks. */
export function contestStateFrom(value: unknown): ContestState {
  return stateShape.safeParse(value).data ?? {};
}

/** A write of something else than what is wanted now proves nothing. */
function counted({ lastWrite }: ContestState, { wanted }: ContestObservation): OwnWrite | undefined {
  if (lastWrite === undefined || lastWrite.wanted !== wanted) return undefined;
  return { ...lastWrite, passesSince: Math.min(lastWrite.passesSince + 1, PASSES_TO_BE_UNDONE + 1) };
}

function isOld(lastWrite: OwnWrite | undefined): boolean {
  return lastWrite === undefined || lastWrite.passesSince > PASSES_TO_BE_UNDONE;
}

function begun(lastWrite: OwnWrite | undefined, { nowMs, intervalMs }: ContestObservation): Contest | undefined {
  if (lastWrite === undefined || isOld(lastWrite)) return undefined;
  if (nowMs - lastWrite.atMs > INTERVALS_TO_BE_UNDONE * intervalMs) return undefined;
  const delayMs = 2 * intervalMs;
  return { lastSeenMs: nowMs, delayMs, nextWriteMs: lastWrite.atMs + delayMs };
}

function stillOn(contest: Contest | undefined, { differs, nowMs }: ContestObservation): Contest | undefined {
  const quiet = contest !== undefined && !differs && nowMs - contest.lastSeenMs >= QUIET_MS;
  return quiet ? undefined : contest;
}

function sameVersions(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((version, index) => version === other[index]);
}
