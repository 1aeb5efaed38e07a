import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import {
  afterChanges,
  endOf,
  isActive,
  isKeptByAgent,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
} from '../cluster/lease.ts';
import { newLease, nextLease, type ServerAnswer } from './lease-states.ts';
import type { PublishedFamily } from './objects.ts';
import { hasAnswered, isAnyAnswered, outcomesOf, type ProbeOutcome, shortDetail, verdictFor } from './probe-outcome.ts';
import { type ExpectedAddress, publishedAddresses } from './published-servers.ts';

export interface LeaseObservation {
  readonly spec: ClusterSpec;
  readonly families: readonly PublishedFamily[];
  readonly leases: readonly Lease[];
  readonly expected: readonly ExpectedAddress[];
  /** The outcomes by address. An address without an outcome was not probed. */
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  readonly nowMs: number;
  /** The interval at which each address is currently probed. */
  readonly triesEveryMs: number;
}

/** A lease is removed an hour after it and its withdrawal ended. */
const FORGET_AFTER_MS = 3_600_000;
/** Two misses count together if they are at most this many passes apart: passes in between may be lost or late. */
const TRIES_TO_MISS_AGAIN = 3;
/** A single late probe does not count as a miss. After this many intervals of late probes, the next one does. */
const LATE_INTERVALS = 2;

/** Returns the leases that a tick changes, by address; undefined deletes a lease. Each family is decided on its own. */
export function decideLeases(observation: LeaseObservation): LeaseChanges {
  const { families, leases, expected, outcomes } = observation;
  return new Map(
    families.flatMap(({ isOf }) => [
      ...decideFamily({
        ...observation,
        leases: leases.filter(({ address }) => isOf(address)),
        expected: expected.filter(({ address }) => isOf(address)),
        outcomes: outcomesOf(outcomes, isOf),
      }),
    ]),
  );
}

function decideFamily(observation: LeaseObservation): LeaseChanges {
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

/** Returns a line for each written change of a lease, with its reason. A refresh and a miss are not reported. */
export function describeChanges(
  { leases, outcomes, nowMs }: Pick<LeaseObservation, 'leases' | 'outcomes' | 'nowMs'>,
  decided: LeaseChanges,
  written: ReadonlySet<string>,
): string[] {
  const byAddress = new Map(leases.map((lease) => [lease.address, lease]));
  return [...written].flatMap((address) => {
    const change = describeChange(address, byAddress.get(address), decided.get(address), nowMs);
    return change === undefined ? [] : `${change}: ${outcomes.get(address)?.detail ?? 'not in the spec'}`;
  });
}

function describeChange(address: string, before: Lease | undefined, after: Lease | undefined, nowMs: number) {
  if (after === undefined) return `removed lease ${address}`;
  if (before === undefined) return `took lease ${address}`;
  if (isActive(before, nowMs) === isActive(after, nowMs)) return undefined;
  return isActive(after, nowMs) ? `took lease ${address} again` : `dropped lease ${address}`;
}

/** Returns the probe result of an address; `undefined` if the address was not probed, or its probe did not complete. */
function answerOf(
  { address, kind, host }: ExpectedAddress,
  { source }: Lease,
  { spec, outcomes, nowMs, leases, triesEveryMs }: LeaseObservation,
): ServerAnswer | undefined {
  const outcome = outcomes.get(address);
  if (outcome === undefined || (outcome.verdict === 'unknown' && !outcome.late)) return undefined;
  const verdict = verdictFor(kind, outcome);
  // Silence may be our own network's, unless another address answered in this tick. For an agent that stopped refreshing its
  // lease, another agent that still refreshes its own is proof enough: the lease expired without any probe.
  const isProven = hasAnswered(outcome) || isAnyAnswered(outcomes);
  const isAgents = source === 'agent' && leases.some((other) => other.source === 'agent' && isActive(other, nowMs));
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const miss = { shortestMs: intervalMs / 2, longestMs: TRIES_TO_MISS_AGAIN * triesEveryMs };
  return {
    answer: verdict === 'unknown' ? 'late' : verdict,
    source: 'probe',
    leaseMs: spec.endpoints.leaseSeconds * 1000,
    ...(host !== undefined && { host }),
    lastProbe: shortDetail(outcome),
    // If there is no other address to probe, only silence can show that the server is down.
    provesEnd: !hasAnswered(outcome) && (isProven || outcomes.size === 1),
    ...((isProven || isAgents) && { miss }),
    // Ticks come a little early or late.
    lateAfterMs: (LATE_INTERVALS - 0.5) * intervalMs,
  };
}

/** Returns whether to delete a probed lease outside the spec: at once if another address is live, or else when it expires. */
function departs(lease: Lease, othersLive: boolean, { spec, nowMs }: LeaseObservation): boolean {
  if (isWithdrawn(lease, nowMs)) return false;
  if (lease.expiresAtMs <= nowMs) return true;
  // A former record of a host name of the spec.
  const lapses = spec.apiServers.some((server) => 'host' in server && server.host === lease.host);
  return othersLive && !lapses;
}
