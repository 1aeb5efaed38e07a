import type { PublishedFamily } from '../cluster/published-objects.ts';
import {
  afterChanges,
  endOf,
  isActive,
  isKeptByAgent,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
} from '../leases/lease.ts';
import { newLease, nextLease, type ServerAnswer } from '../leases/lease-states.ts';
import { hasAnswered, isAnyAnswered, outcomesOf, shortDetail, verdictFor } from '../leases/probe-outcome.ts';
import { defined } from '../util/values.ts';
import { type ExpectedAddress, publishedAddresses, type ServersSeen } from './published-servers.ts';

export interface LeaseObservation extends Pick<ServersSeen, 'spec' | 'expected' | 'outcomes' | 'nowMs'> {
  readonly families: readonly PublishedFamily[];
  readonly leases: readonly Lease[];
  /** The current interval between two probes of an address. */
  readonly triesEveryMs: number;
}

/** A lease is removed this long after its expiry and the end of its withdrawal, unless its address is still published. */
const FORGET_AFTER_MS = 3_600_000;
/** Two misses are consecutive if they are at most this many probe intervals apart, because probes may be lost or late. */
const TRIES_TO_MISS_AGAIN = 3;
/** A late probe counts as a miss only when the probes of the address have been late for this many intervals. */
const LATE_INTERVALS = 2;

/** Returns the changed lease of each address; `undefined` deletes the lease. Decides each family independently. */
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
  const refreshes = new Map<string, Lease | undefined>();
  for (const known of expected) {
    const before = byAddress.get(known.address) ?? newLease(known.address);
    const answer = isKeptByAgent(before, nowMs) ? undefined : answerOf(known, before, observation);
    const after = answer === undefined ? before : nextLease(before, answer, nowMs);
    if (after !== before) refreshes.set(known.address, after);
  }
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
  return new Map([...refreshes, ...removed.map(({ address }) => [address, undefined] as const)]);
}

/** Returns a line for each written change of a lease, except refreshes and misses. `noteOf` completes the line of a new lease. */
export function describeChanges(
  { leases, outcomes, nowMs }: Pick<LeaseObservation, 'leases' | 'outcomes' | 'nowMs'>,
  decided: LeaseChanges,
  written: ReadonlySet<string>,
  noteOf: (address: string) => string,
): string[] {
  const byAddress = new Map(leases.map((lease) => [lease.address, lease]));
  return [...written].flatMap((address) => {
    const before = byAddress.get(address);
    const change = describeChange(address, before, decided.get(address), nowMs);
    const note = before === undefined ? noteOf(address) : '';
    return change === undefined ? [] : `${change}: ${outcomes.get(address)?.detail ?? 'not in the spec'}${note}`;
  });
}

function describeChange(address: string, before: Lease | undefined, after: Lease | undefined, nowMs: number) {
  if (after === undefined) return `removed lease ${address}`;
  if (before === undefined) return `took lease ${address}`;
  if (isActive(before, nowMs) === isActive(after, nowMs)) return undefined;
  return isActive(after, nowMs) ? `took lease ${address} again` : `dropped lease ${address}`;
}

/** Returns the answer that decides about a lease; `undefined` if the server was not probed, or its probe did not complete. */
function answerOf(
  { address, kind, host }: ExpectedAddress,
  { source }: Lease,
  { spec, outcomes, nowMs, leases, triesEveryMs }: LeaseObservation,
): ServerAnswer | undefined {
  const outcome = outcomes.get(address);
  if (outcome === undefined || (outcome.verdict === 'unknown' && !outcome.late)) return undefined;
  const verdict = verdictFor(kind, outcome);
  // Silence counts as a miss only if another address answered, because otherwise our own network may be the cause; for the
  // lease of an agent also if another agent refreshes its lease.
  const isProven = hasAnswered(outcome) || isAnyAnswered(outcomes);
  const isAgents = source === 'agent' && leases.some((other) => other.source === 'agent' && isActive(other, nowMs));
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const miss = { shortestMs: intervalMs / 2, longestMs: TRIES_TO_MISS_AGAIN * triesEveryMs };
  return {
    answer: verdict === 'unknown' ? 'late' : verdict,
    source: 'probe',
    leaseMs: spec.endpoints.leaseSeconds * 1000,
    ...defined({ host }),
    lastProbe: shortDetail(outcome),
    // If only one address is probed, its silence must suffice as evidence that the server is down.
    provesEnd: !hasAnswered(outcome) && (isProven || outcomes.size === 1),
    ...((isProven || isAgents) && { miss }),
    // Half an interval is subtracted because ticks may come a little early or late.
    lateAfterMs: (LATE_INTERVALS - 0.5) * intervalMs,
  };
}

/** Returns true if the lease of an address outside the spec must be deleted: it has expired, or another address is live. */
function departs(lease: Lease, othersLive: boolean, { spec, nowMs }: LeaseObservation): boolean {
  if (isWithdrawn(lease, nowMs)) return false;
  if (lease.expiresAtMs <= nowMs) return true;
  // An address that was a record of a host name of the spec keeps its lease until the lease expires.
  const lapses = spec.apiServers.some((server) => 'host' in server && server.host === lease.host);
  return othersLive && !lapses;
}
