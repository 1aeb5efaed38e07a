import * as z from 'zod/mini';
import type { Finding } from '../cluster/finding.ts';
import { FIELD_MANAGER, type KubernetesObject } from '../cluster/kubernetes-objects.ts';

const ownWriteShape = z.object({
  atMs: z.number(),
  passesSince: z.number(),
  /** The resourceVersions of Endpoints and EndpointSlice after our write. */
  versions: z.readonly(z.array(z.string())),
});

const contestShape = z.object({
  /** The last time at which a pass saw a change of the other writer. */
  lastSeenMs: z.number(),
  nextWriteMs: z.number(),
  delayMs: z.number(),
});

const stateShape = z.object({
  /** The addresses and ports that the last pass had to publish, as one text. */
  wanted: z.exactOptional(z.string()),
  lastWrite: z.exactOptional(z.readonly(ownWriteShape)),
  contest: z.exactOptional(z.readonly(contestShape)),
});

/** Our last correction of another writer's change: the next passes see whether the writer undid it. */
type OwnWrite = Readonly<z.infer<typeof ownWriteShape>>;
/** Another writer writes the same objects. */
type Contest = Readonly<z.infer<typeof contestShape>>;
/** The state between passes. It stays equal while nothing happens, so that it need not be saved again. */
export type ContestState = Readonly<z.infer<typeof stateShape>>;

export interface ContestObservation {
  readonly wanted: string;
  /** Whether the objects differ from what the pass has to publish. */
  readonly differs: boolean;
  /** Another writer made one of the objects. */
  readonly isForeign: boolean;
  /** The resourceVersions that the pass read; an empty text for a missing object. */
  readonly versions: readonly string[];
  /** The objects publish no address, or one whose lease has expired: the pass always corrects this at once. */
  readonly urgent: boolean;
  readonly nowMs: number;
  readonly intervalMs: number;
}

export interface ContestVerdict {
  /** The state for the next pass if this one does not write, or not all. */
  readonly state: ContestState;
  /** The state after the write, but for its versions. A write that contests doubles the delay of the next one. */
  readonly afterWrite: ContestState;
  /** The write would only revert another writer's change, and its delay has not ended. */
  readonly withhold: boolean;
  /** Another writer undid what we wrote. */
  readonly twoOwners: boolean;
}

const PASSES_TO_BE_UNDONE = 2;
/** A change that is seen after more intervals than this does not begin a contest. */
const INTERVALS_TO_BE_UNDONE = 6;
const LONGEST_DELAY_MS = 600_000;
const QUIET_MS = 600_000;

/**
 * Corrects a change of another writer at once. If the writer undoes this within two ticks, there are two owners: from then on
 * writes that only contest wait, each twice as long as the last one, until the objects are unchanged for ten minutes. A
 * write that adds or removes an address does not contest.
 */
export function judgeContest(before: ContestState, observation: ContestObservation): ContestVerdict {
  const { nowMs, differs, wanted } = observation;
  const isSame = before.wanted === wanted;
  const lastWrite = isSame ? counted(before) : undefined;
  const undone = differs && lastWrite !== undefined && !sameVersions(lastWrite.versions, observation.versions);
  const seenAgain = before.contest && { ...before.contest, lastSeenMs: nowMs };
  const contest = undone ? (seenAgain ?? begun(lastWrite, observation)) : stillOn(before.contest, observation);
  const remembered = contest !== undefined || !isOld(lastWrite);
  const twoOwners = undone && contest !== undefined;
  // If the pass has to publish the same as the last one, another writer changed the objects.
  const corrects = observation.isForeign || (differs && isSame);
  return {
    state: { wanted, ...(lastWrite && remembered && { lastWrite }), ...(contest && { contest }) },
    afterWrite: {
      wanted,
      ...((corrects || contest) && { lastWrite: { versions: [], atMs: nowMs, passesSince: 0 } }),
      ...(contest && { contest: afterContesting(contest, twoOwners, nowMs) }),
    },
    withhold: twoOwners && !observation.urgent && nowMs < contest.nextWriteMs,
    twoOwners,
  };
}

function afterContesting(contest: Contest, twoOwners: boolean, nowMs: number): Contest {
  const delayMs = twoOwners ? Math.min(contest.delayMs * 2, LONGEST_DELAY_MS) : contest.delayMs;
  return { ...contest, delayMs, nextWriteMs: nowMs + delayMs };
}

/** Returns the versions of the objects as they are compared: an empty text for a missing object. */
export function versionsOf(objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}

/**
 * Returns the finding of a contest, with the other writer.
 * @param found the objects as they were read
 */
export function twoOwners(
  found: readonly (KubernetesObject | undefined)[],
  { state, withhold }: Pick<ContestVerdict, 'state' | 'withhold'>,
): Finding {
  const manager = lastManager(found) ?? 'an unknown field manager';
  const seconds = Math.round((state.contest?.delayMs ?? 0) / 1000);
  const then = withhold ? `writes that only contest wait ${seconds} s` : 'it is written again';
  const remedy = 'Keep one of them: API servers with --endpoint-reconciler-type=none do not write endpoints';
  const message = `the endpoints of default/kubernetes have two owners: ${manager} changed what was written here; ${then}. ${remedy}`;
  return { type: 'twoOwners', message, item: manager };
}

/** Returns the other writer that wrote the objects last, by their managed fields. */
function lastManager(objects: readonly (KubernetesObject | undefined)[]): string | undefined {
  const fields = objects.flatMap((object) => object?.metadata.managedFields ?? []);
  const others = fields.filter(({ manager }) => manager !== FIELD_MANAGER);
  return others.toSorted((one, other) => (other.time ?? '').localeCompare(one.time ?? ''))[0]?.manager;
}

/** Returns the saved state; empty if its layout is unknown: a contest is found again within two ticks. */
export function contestStateFrom(value: unknown): ContestState {
  return stateShape.safeParse(value).data ?? {};
}

/** Returns our last write with one more pass counted since it. */
function counted({ lastWrite }: ContestState): OwnWrite | undefined {
  return lastWrite && { ...lastWrite, passesSince: Math.min(lastWrite.passesSince + 1, PASSES_TO_BE_UNDONE + 1) };
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
