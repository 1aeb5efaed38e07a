import type { ApiServerKind } from '../cluster/cluster-spec.ts';
import {
  afterChanges,
  endOf,
  isActive,
  isKeptByAgent,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
} from '../cluster/lease.ts';
import { newLease, nextLease, type ServerAnswer } from './next-lease.ts';
import { type ProbeOutcome, shortDetail } from './probe-outcome.ts';
import { type ExpectedAddress, publishedAddresses } from './published-addresses.ts';

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
  const probed = expected.flatMap((known): Lease[] => {
    const before = byAddress.get(known.address) ?? newLease(known.address);
    const answer = isKeptByAgent(before, nowMs) ? undefined : answerOf(known, before, observation);
    const after = answer === undefined ? before : nextLease(before, answer, nowMs);
    return after === before ? [] : [after];
  });
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

const ANSWER_OF = { ready: 'ready', alive: 'alive', shuttingDown: 'shuttingDown', unknown: 'late' } as const;

/** Returns what the probe of an address means for its lease; undefined if it was not probed, or not to the end. */
function answerOf(
  { address, kind, host }: ExpectedAddress,
  { source }: Lease,
  { outcomes, nowMs, leases, leaseMs, intervalMs, triesEveryMs }: LeaseObservation,
): ServerAnswer | undefined {
  const outcome = outcomes.get(address);
  if (outcome === undefined || (outcome.verdict === 'unknown' && !outcome.late)) return undefined;
  const verdict = verdictFor(kind, outcome);
  // Silence may be our own network's, unless another address answered in this tick. For an agent that stopped refreshing its
  // lease, another agent that did not is proof enough: the lease expired without any probe.
  const isProven = outcome.answered || isAnyAnswered(outcomes);
  const isAgents = source === 'agent' && leases.some((other) => other.source === 'agent' && isActive(other, nowMs));
  const miss = { shortestMs: intervalMs / 2, longestMs: TRIES_TO_MISS_AGAIN * triesEveryMs };
  return {
    answer: verdict === 'miss' ? (outcome.answered ? 'error' : 'silence') : ANSWER_OF[verdict],
    source: 'probe',
    leaseMs,
    ...(host !== undefined && { host }),
    lastProbe: shortDetail(outcome),
    // Where there is no other address to probe, silence is all that a server that went down will ever give.
    provesEnd: !outcome.answered && (isProven || outcomes.size === 1),
    ...((isProven || isAgents) && { miss }),
    // Ticks come a little early or late.
    lateAfterMs: (LATE_INTERVALS - 0.5) * intervalMs,
  };
}

/** One of several servers behind a shared address shuts down: what is in front of them lives. */
function verdictFor(kind: ApiServerKind, { verdict }: ProbeOutcome): ProbeOutcome['verdict'] {
  return kind === 'shared' && verdict === 'shuttingDown' ? 'alive' : verdict;
}

export function isAnyAnswered(outcomes: ReadonlyMap<string, ProbeOutcome>): boolean {
  for (const { answered } of outcomes.values()) if (answered) return true;
  return false;
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
  const isMissed = outcome?.verdict === 'miss' && (outcome.answered || isAnyAnswered(outcomes));
  return {
    ...newLease(address),
    generation: 1,
    ...(host !== undefined && { host }),
    expiresAtMs: nowMs,
    ...(isMissed && { misses: 1, missedAtMs: nowMs }),
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
