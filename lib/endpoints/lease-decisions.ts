import type { ApiServerKind } from '../cluster/cluster-spec.ts';
import { isHeld, isWithdrawn, type Lease } from '../cluster/lease.ts';
import { type ProbeOutcome, shortDetail } from './probe-outcome.ts';
import { type ExpectedAddress, MISSES_TO_GO, publishedAddresses } from './published-addresses.ts';

export type LeaseChange =
  | { readonly verb: 'put'; readonly lease: Lease }
  /** The item that was listed. */
  | { readonly verb: 'delete'; readonly lease: Lease };

export interface LeaseObservation {
  readonly leases: readonly Lease[];
  readonly expected: readonly ExpectedAddress[];
  /** By address. Whoever has no outcome was not probed. */
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Host names of the spec: what they no longer stand for lapses, it is not dropped. */
  readonly hosts: readonly string[];
  readonly nowMs: number;
  readonly leaseMs: number;
  /** The cluster's start: what ran out and does not answer goes without a second probe. */
  readonly firstPass: boolean;
}

/** An item that says nothing any more is deleted an hour after its lease or its withdrawal ended. */
const FORGET_AFTER_MS = 3_600_000;

/** Every change that a tick makes to the leases: at most one an address, nothing that changes nothing. */
export function decideLeases(observation: LeaseObservation): LeaseChange[] {
  const { leases, expected } = observation;
  const byAddress = new Map(leases.map((lease) => [lease.address, lease]));
  const refreshes = expected.flatMap((known) => probedChange(known, byAddress.get(known.address), observation) ?? []);
  const expectedAddresses = new Set(expected.map(({ address }) => address));
  const unexpected = leases.filter((lease) => lease.source === 'probe' && !expectedAddresses.has(lease.address));
  const staying = afterwards(leases, refreshes).filter((lease) => !unexpected.includes(lease));
  const othersLive = publishedAddresses(staying, expected, observation.nowMs).length > 0;
  const departures = unexpected.filter((lease) => departs(lease, othersLive, observation));
  const changed = new Set([
    ...refreshes.map(({ lease }) => lease.address),
    ...departures.map(({ address }) => address),
  ]);
  const forgotten = leases.filter((lease) => !changed.has(lease.address) && isForgotten(lease, observation.nowMs));
  return [...refreshes, ...[...departures, ...forgotten].map((lease) => ({ verb: 'delete' as const, lease }))];
}

function probedChange(
  known: ExpectedAddress,
  lease: Lease | undefined,
  observation: LeaseObservation,
): LeaseChange | undefined {
  const outcome = observation.outcomes.get(known.address);
  if (outcome === undefined || lease?.source === 'agent') return undefined;
  const verdict = verdictFor(known.kind, outcome);
  if (verdict === 'ready') return refreshed(known, lease, outcome, observation);
  if (verdict === 'alive') return refreshedUnlessDown(known, lease, outcome, observation);
  if (lease === undefined) return undefined;
  if (isWithdrawn(lease, observation.nowMs)) return seenDownWhileWithdrawn(lease, outcome, observation);
  return verdict === 'shuttingDown' ? dropped(lease, outcome, observation.nowMs) : missed(lease, outcome, observation);
}

/** One of several behind a shared address shuts down: whoever is in front of it lives. */
function verdictFor(kind: ApiServerKind, { verdict }: ProbeOutcome): ProbeOutcome['verdict'] {
  return kind === 'shared' && verdict === 'shuttingDown' ? 'alive' : verdict;
}

/** A 200. It ends a withdrawal only after the server was seen down. */
function refreshed(
  { address, host }: ExpectedAddress,
  lease: Lease | undefined,
  outcome: ProbeOutcome,
  { nowMs, leaseMs }: LeaseObservation,
): LeaseChange | undefined {
  if (lease !== undefined && isWithdrawn(lease, nowMs) && !lease.seenDown) return undefined;
  const fresh: Lease = {
    address,
    generation: (lease?.generation ?? 0) + 1,
    source: 'probe',
    ...(host !== undefined && { host }),
    expiresAtMs: nowMs + leaseMs,
    misses: 0,
    seenDown: false,
    lastProbe: shortDetail(outcome),
  };
  return { verb: 'put', lease: fresh };
}

/** 401, 403 or 429. A server that is withdrawn, or said that it was shutting down, comes back with a 200 only. */
function refreshedUnlessDown(
  known: ExpectedAddress,
  lease: Lease | undefined,
  outcome: ProbeOutcome,
  observation: LeaseObservation,
): LeaseChange | undefined {
  const wasShuttingDown = lease?.seenDown === true && lease.withdrawnUntilMs === undefined;
  if (lease !== undefined && (wasShuttingDown || isWithdrawn(lease, observation.nowMs))) return undefined;
  return refreshed(known, lease, outcome, observation);
}

function dropped(lease: Lease, outcome: ProbeOutcome, nowMs: number): LeaseChange | undefined {
  const { expiresAtMs, misses, seenDown } = lease;
  if (expiresAtMs <= nowMs && misses >= MISSES_TO_GO && seenDown) return undefined;
  const gone = {
    expiresAtMs: Math.min(expiresAtMs, nowMs),
    misses: MISSES_TO_GO,
    seenDown: true,
    lastProbe: shortDetail(outcome),
  };
  return { verb: 'put', lease: { ...lease, ...gone } };
}

function missed(lease: Lease, outcome: ProbeOutcome, { nowMs, firstPass }: LeaseObservation): LeaseChange | undefined {
  if (firstPass && !isHeld(lease, nowMs)) return { verb: 'delete', lease };
  // Silence: the process that said it was shutting down is gone, what answers from now on is another.
  const seenDown = lease.seenDown && outcome.answered;
  if (lease.misses >= MISSES_TO_GO && lease.seenDown === seenDown) return undefined;
  const misses = Math.min(lease.misses + 1, MISSES_TO_GO);
  return { verb: 'put', lease: { ...lease, misses, seenDown, lastProbe: shortDetail(outcome) } };
}

/** Silence counts as down only when it cannot be our own network: something else answered, or there is nothing else. */
function seenDownWhileWithdrawn(
  lease: Lease,
  outcome: ProbeOutcome,
  { outcomes }: LeaseObservation,
): LeaseChange | undefined {
  const others = [...outcomes].filter(([address]) => address !== lease.address);
  const proven = outcome.answered || others.length === 0 || others.some(([, { answered }]) => answered);
  if (!proven || lease.seenDown) return undefined;
  return { verb: 'put', lease: { ...lease, seenDown: true, lastProbe: shortDetail(outcome) } };
}

/** A lease of ours whose address is no longer in the spec goes at once if another is live; alone it stays till it runs out. */
function departs(lease: Lease, othersLive: boolean, { hosts, nowMs }: LeaseObservation): boolean {
  if (isWithdrawn(lease, nowMs)) return false;
  if (lease.expiresAtMs <= nowMs) return true;
  const lapses = lease.host !== undefined && hosts.includes(lease.host);
  return othersLive && !lapses;
}

function isForgotten(lease: Lease, nowMs: number): boolean {
  return Math.max(lease.expiresAtMs, lease.withdrawnUntilMs ?? 0) + FORGET_AFTER_MS <= nowMs;
}

function afterwards(leases: readonly Lease[], changes: readonly LeaseChange[]): Lease[] {
  const result = new Map(leases.map((lease) => [lease.address, lease]));
  for (const { verb, lease } of changes) {
    if (verb === 'put') result.set(lease.address, lease);
    else result.delete(lease.address);
  }
  return [...result.values()];
}
