import type { ApiServerKind } from '../cluster/cluster-spec.ts';
import {
  afterChanges,
  endOf,
  isHeld,
  isKeptByAgent,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
} from '../cluster/lease.ts';
import { type ProbeOutcome, shortDetail } from './probe-outcome.ts';
import { type ExpectedAddress, hasMissedTwice, MISSES_TO_GO, publishedAddresses } from './published-addresses.ts';

export interface LeaseObservation {
  readonly leases: readonly Lease[];
  readonly expected: readonly ExpectedAddress[];
  /** By address. An address without an outcome was not probed. */
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Host names of the spec: the lease of a former record expires, it is not dropped. */
  readonly hosts: readonly string[];
  readonly nowMs: number;
  readonly leaseMs: number;
  readonly intervalMs: number;
  /** The time between tries at present. */
  readonly triesEveryMs: number;
}

/** A lease is removed an hour after it and its withdrawal ended. */
const FORGET_AFTER_MS = 3_600_000;
/** Two misses count together if they are at most so many tries apart: tries in between may be lost or late. */
const TRIES_TO_MISS_AGAIN = 3;
/** A single late probe does not count as a miss. After so many intervals of lateness, a probe without an answer does. */
const LATE_INTERVALS = 2;

/** Returns every change that a tick makes to the leases: none that changes nothing. */
export function decideLeases(observation: LeaseObservation): LeaseChanges {
  const { leases, expected, nowMs } = observation;
  const byAddress = new Map(leases.map((lease) => [lease.address, lease]));
  const probed = expected.flatMap((known) => probedChange(known, byAddress.get(known.address), observation) ?? []);
  const refreshes = new Map(probed.map((lease) => [lease.address, lease]));
  const expectedAddresses = new Set(expected.map(({ address }) => address));
  const isUnexpected = ({ source, address }: Lease) => source === 'probe' && !expectedAddresses.has(address);
  const staying = afterChanges(leases, refreshes).filter((lease) => !isUnexpected(lease));
  const othersLive = publishedAddresses(staying, expected, nowMs).length > 0;
  const published = new Set(publishedAddresses(leases, expected, nowMs));
  const removed = leases.filter(
    (lease) =>
      (isUnexpected(lease) && departs(lease, othersLive, observation)) ||
      (!refreshes.has(lease.address) && !published.has(lease.address) && endOf(lease) + FORGET_AFTER_MS <= nowMs),
  );
  return new Map<string, Lease | undefined>([
    ...refreshes,
    ...removed.map(({ address }) => [address, undefined] as const),
  ]);
}

function probedChange(
  known: ExpectedAddress,
  lease: Lease | undefined,
  observation: LeaseObservation,
): Lease | undefined {
  const outcome = observation.outcomes.get(known.address);
  if (outcome === undefined || (lease !== undefined && isKeptByAgent(lease, observation.nowMs))) return undefined;
  const verdict = verdictFor(known.kind, outcome);
  if (verdict === 'unknown') return lease && late(lease, outcome, observation);
  if (verdict === 'ready') return refreshed(known, lease, outcome, observation);
  if (verdict === 'alive') return refreshedUnlessDown(known, lease, outcome, observation);
  if (lease === undefined) return undefined;
  if (isWithdrawn(lease, observation.nowMs)) return seenDownWhileWithdrawn(lease, outcome, observation);
  return verdict === 'shuttingDown' ? dropped(lease, outcome, observation.nowMs) : missed(lease, outcome, observation);
}

/** One of several servers behind a shared address shuts down: what is in front of them lives. */
function verdictFor(kind: ApiServerKind, { verdict }: ProbeOutcome): ProbeOutcome['verdict'] {
  return kind === 'shared' && verdict === 'shuttingDown' ? 'alive' : verdict;
}

/** A 200. It ends a withdrawal only after the server was seen down. */
function refreshed(
  { address, host }: ExpectedAddress,
  lease: Lease | undefined,
  outcome: ProbeOutcome,
  { nowMs, leaseMs }: LeaseObservation,
): Lease | undefined {
  if (lease !== undefined && isWithdrawn(lease, nowMs) && !lease.seenDown) return undefined;
  return {
    address,
    generation: (lease?.generation ?? 0) + 1,
    source: 'probe',
    ...(host !== undefined && { host }),
    expiresAtMs: nowMs + leaseMs,
    misses: 0,
    seenDown: false,
    lastProbe: shortDetail(outcome),
  };
}

/** 401, 403 or 429. A server that is withdrawn, or reported its shutdown, comes back only with a 200. */
function refreshedUnlessDown(
  known: ExpectedAddress,
  lease: Lease | undefined,
  outcome: ProbeOutcome,
  observation: LeaseObservation,
): Lease | undefined {
  const wasShuttingDown = lease?.seenDown === true && lease.withdrawnUntilMs === undefined;
  if (lease !== undefined && (wasShuttingDown || isWithdrawn(lease, observation.nowMs))) return undefined;
  return refreshed(known, lease, outcome, observation);
}

function dropped(lease: Lease, outcome: ProbeOutcome, nowMs: number): Lease | undefined {
  const { expiresAtMs, seenDown } = lease;
  if (expiresAtMs <= nowMs && hasMissedTwice(lease) && seenDown) return undefined;
  const gone = {
    expiresAtMs: Math.min(expiresAtMs, nowMs),
    misses: MISSES_TO_GO,
    missedAtMs: nowMs,
    seenDown: true,
    lastProbe: shortDetail(outcome),
  };
  return { ...lease, ...gone };
}

/** Writes a miss that counts, and the last answer of an address that is published although its lease expired. */
function missed(lease: Lease, outcome: ProbeOutcome, observation: LeaseObservation): Lease | undefined {
  const { nowMs } = observation;
  // Silence: the process that reported its shutdown has ended, and what answers from now on is another.
  const seenDown = lease.seenDown && (outcome.answered || !provesSilence(lease, observation));
  const counted = provesMiss(lease, outcome, observation) ? missesWith(lease, observation) : undefined;
  const remembered = !isHeld(lease, nowMs) && !hasMissedTwice(lease);
  const noted = remembered && lease.lastProbe !== shortDetail(outcome);
  if (counted === undefined && lease.seenDown === seenDown && !noted) return undefined;
  const misses = counted !== undefined && { misses: counted, missedAtMs: nowMs };
  return { ...lease, ...misses, seenDown, lastProbe: shortDetail(outcome) };
}

/**
 * A process that is late in each tick would learn nothing about a server that died: the third tick without an answer
 * counts like silence.
 */
function late(lease: Lease, outcome: ProbeOutcome, observation: LeaseObservation): Lease | undefined {
  const { nowMs, intervalMs } = observation;
  if (!outcome.late || isWithdrawn(lease, nowMs)) return undefined;
  const { lateSinceMs } = lease;
  if (lateSinceMs === undefined) return { ...lease, lateSinceMs: nowMs };
  // Ticks come a little early or late.
  return nowMs - lateSinceMs < (LATE_INTERVALS - 0.5) * intervalMs ? undefined : missed(lease, outcome, observation);
}

/** The misses in a row with this one; undefined when it proves nothing new, or comes too soon after the last one. */
function missesWith(lease: Lease, { nowMs, intervalMs, triesEveryMs }: LeaseObservation): number | undefined {
  if (hasMissedTwice(lease) && lease.expiresAtMs <= nowMs) return undefined;
  const sinceMs = nowMs - (lease.missedAtMs ?? Number.NEGATIVE_INFINITY);
  if (lease.misses === 0 || Math.abs(sinceMs) > TRIES_TO_MISS_AGAIN * triesEveryMs) return 1;
  return sinceMs < intervalMs / 2 ? undefined : Math.min(lease.misses + 1, MISSES_TO_GO);
}

/**
 * Silence may be our own network's, unless another address answered in this tick. For an agent that stopped refreshing its
 * lease, another agent that did not is proof enough: the lease expired without any probe.
 */
function provesMiss(lease: Lease, { answered }: ProbeOutcome, { outcomes, leases, nowMs }: LeaseObservation): boolean {
  if (answered || isAnyAnswered(outcomes)) return true;
  return lease.source === 'agent' && leases.some((other) => other.source === 'agent' && isHeld(other, nowMs));
}

/** Where there is no other address to probe, silence is all that a server that went down will ever give. */
function provesSilence(lease: Lease, { outcomes }: LeaseObservation): boolean {
  return isAnyAnswered(outcomes) || [...outcomes.keys()].every((address) => address === lease.address);
}

export function isAnyAnswered(outcomes: ReadonlyMap<string, ProbeOutcome>): boolean {
  for (const { answered } of outcomes.values()) if (answered) return true;
  return false;
}

function seenDownWhileWithdrawn(lease: Lease, outcome: ProbeOutcome, observation: LeaseObservation): Lease | undefined {
  if (lease.seenDown || !(outcome.answered || provesSilence(lease, observation))) return undefined;
  return { ...lease, seenDown: true, lastProbe: shortDetail(outcome) };
}

/**
 * The lease of an address that is published without one, as in the first pass over an adopted cluster or after the table
 * lost an item: it expires now, and two misses remove the address.
 */
export function rememberedLease(
  { address, kind, host }: ExpectedAddress,
  { outcomes, nowMs }: Pick<LeaseObservation, 'outcomes' | 'nowMs'>,
): Lease | undefined {
  const outcome = outcomes.get(address);
  if (outcome !== undefined && verdictFor(kind, outcome) === 'shuttingDown') return undefined;
  const missed = outcome?.verdict === 'miss' && (outcome.answered || isAnyAnswered(outcomes));
  return {
    address,
    generation: 1,
    source: 'probe',
    ...(host !== undefined && { host }),
    expiresAtMs: nowMs,
    misses: missed ? 1 : 0,
    ...(missed && { missedAtMs: nowMs }),
    seenDown: false,
    ...(outcome && { lastProbe: shortDetail(outcome) }),
  };
}

/** A lease of ours whose address is no longer in the spec is deleted at once if another is live, or else when it expires. */
function departs(lease: Lease, othersLive: boolean, { hosts, nowMs }: LeaseObservation): boolean {
  if (isWithdrawn(lease, nowMs)) return false;
  if (lease.expiresAtMs <= nowMs) return true;
  const lapses = lease.host !== undefined && hosts.includes(lease.host);
  return othersLive && !lapses;
}
