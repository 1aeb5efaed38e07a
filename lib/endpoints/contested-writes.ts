import * as z from 'zod/mini';
import type { Finding } from '../cluster/finding.ts';
import { FIELD_MANAGER, type KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { defined } from '../util/values.ts';

/** Our last correction of a change by another writer. The next passes check whether that writer undoes it. */
const ownWriteShape = z.readonly(
  z.object({
    atMs: z.number(),
    passesSince: z.number(),
    /** The resourceVersions of the Endpoints and the EndpointSlice after our write. */
    versions: z.readonly(z.array(z.string())),
  }),
);
type OwnWrite = z.infer<typeof ownWriteShape>;

/** A contest: another writer undoes our corrections. */
const contestShape = z.readonly(
  z.object({
    /** The last time at which a pass saw a change by the other writer. */
    lastSeenMs: z.number(),
    nextWriteMs: z.number(),
    delayMs: z.number(),
  }),
);
type Contest = z.infer<typeof contestShape>;

/** The state that one pass leaves for the next. While nothing changes, the state stays the same and causes no new run record. */
const stateShape = z.readonly(
  z.object({
    /** The addresses and ports that the last pass had to publish, as one text. */
    wanted: z.exactOptional(z.string()),
    lastWrite: z.exactOptional(ownWriteShape),
    contest: z.exactOptional(contestShape),
  }),
);
export type ContestState = z.infer<typeof stateShape>;

export interface ContestObservation {
  readonly wanted: string;
  /** True if the objects differ from what the pass has to publish. */
  readonly differs: boolean;
  /** True if another writer created one of the objects. */
  readonly isForeign: boolean;
  /** The resourceVersions that the pass read; an empty text for a missing object. */
  readonly versions: readonly string[];
  /** True if the objects publish no address, or an address that must not be published. A pass always corrects this immediately. */
  readonly urgent: boolean;
  readonly nowMs: number;
  readonly intervalMs: number;
}

export interface ContestVerdict {
  /** The state for the next pass if this pass writes nothing, or only some of the objects. */
  readonly state: ContestState;
  /** Returns the state for the next pass after this pass has written. `versions`: the resourceVersions after the write. */
  readonly afterWrite: (versions: readonly string[]) => ContestState;
  /** True if the write would only revert a change by another writer, and the delay of such writes has not ended. */
  readonly withhold: boolean;
  /** True if another writer undid our write. */
  readonly twoOwners: boolean;
}

const PASSES_TO_BE_UNDONE = 2;
/** If a pass sees a change more than this many intervals after our write, the change does not begin a contest. */
const INTERVALS_TO_BE_UNDONE = 6;
const LONGEST_DELAY_MS = 600_000;
const QUIET_MS = 600_000;

/**
 * Judges a change by another writer. Our first correction is immediate. If the other writer undoes the correction within two
 * passes, the endpoints have two owners. Each further correction then waits twice as long as the previous correction. A
 * correction does not wait if it is urgent, or if the addresses or ports to publish have changed. The contest ends when no pass
 * has seen a change by the other writer for ten minutes.
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
  // If the last pass had to publish the same addresses and ports, a difference is a change by another writer.
  const corrects = observation.isForeign || (differs && isSame);
  return {
    state: { wanted, ...(lastWrite && remembered && { lastWrite }), ...defined({ contest }) },
    afterWrite: (versions) => ({
      wanted,
      ...((corrects || contest) && { lastWrite: { versions, atMs: nowMs, passesSince: 0 } }),
      ...(contest && { contest: afterContesting(contest, twoOwners, nowMs) }),
    }),
    withhold: twoOwners && !observation.urgent && nowMs < contest.nextWriteMs,
    twoOwners,
  };
}

function afterContesting(contest: Contest, twoOwners: boolean, nowMs: number): Contest {
  const delayMs = twoOwners ? Math.min(contest.delayMs * 2, LONGEST_DELAY_MS) : contest.delayMs;
  return { ...contest, delayMs, nextWriteMs: nowMs + delayMs };
}

/** Returns the resourceVersion of each object; an empty text for a missing object. */
export function versionsOf(objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}

/** Returns the finding about a contest, which names the other writer. @param found the objects as they were read */
export function twoOwners(
  found: readonly (KubernetesObject | undefined)[],
  { state, withhold }: Pick<ContestVerdict, 'state' | 'withhold'>,
): Finding {
  const isDeleted = found.includes(undefined);
  const manager = lastManager(found);
  const item = manager ?? (isDeleted ? 'another client' : 'an unknown field manager');
  const verb = manager === undefined && isDeleted ? 'deleted' : 'changed';
  const seconds = Math.round((state.contest?.delayMs ?? 0) / 1000);
  const then = withhold ? `contested writes wait ${seconds} s` : 'it is written again';
  const remedy = 'Keep one of them: API servers with --endpoint-reconciler-type=none do not write endpoints';
  const message = `the endpoints of default/kubernetes have two owners: ${item} ${verb} what was written here; ${then}. ${remedy}`;
  return { type: 'twoOwners', message, item };
}

/** Returns the field manager of the last write by another writer. */
function lastManager(objects: readonly (KubernetesObject | undefined)[]): string | undefined {
  const fields = objects.flatMap((object) => object?.metadata.managedFields ?? []);
  const others = fields.filter(({ manager }) => manager !== FIELD_MANAGER);
  return others.toSorted((one, other) => (other.time ?? '').localeCompare(one.time ?? ''))[0]?.manager;
}

/** Returns the saved state. If its layout is unknown, returns an empty state, and the next passes detect a contest again. */
export function contestStateFrom(value: unknown): ContestState {
  return stateShape.safeParse(value).data ?? {};
}

/** Returns our last write. The number of passes since that write is increased by one. */
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
