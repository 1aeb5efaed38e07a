import type { ApiServerKind, ClusterSpec, EndpointReconcilerType } from '../cluster/cluster-spec.ts';
import {
  afterChanges,
  endOf,
  isActive,
  isKeptByAgent,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
} from '../cluster/lease.ts';
import { hasMissedTwice, newLease, nextLease, type ServerAnswer } from './next-lease.ts';
import type { PublishedFamily } from './objects.ts';
import { hasAnswered, type ProbeOutcome, shortDetail } from './probe-outcome.ts';

/** An address of the spec, or a record of a host name of the spec. */
export interface ExpectedAddress {
  /** The canonical text of the address. */
  readonly address: string;
  readonly kind: ApiServerKind;
  readonly host?: string;
}

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

/** Counts a shared address as alive if one of the servers behind it shuts down: its load balancer answers. */
function verdictFor(kind: ApiServerKind, { verdict }: ProbeOutcome): ProbeOutcome['verdict'] {
  return kind === 'shared' && verdict === 'shuttingDown' ? 'alive' : verdict;
}

export function isAnyAnswered(outcomes: ReadonlyMap<string, ProbeOutcome>): boolean {
  for (const outcome of outcomes.values()) if (hasAnswered(outcome)) return true;
  return false;
}

export function outcomesOf(
  outcomes: ReadonlyMap<string, ProbeOutcome>,
  isOf: (address: string) => boolean,
): ReadonlyMap<string, ProbeOutcome> {
  return new Map([...outcomes].filter(([address]) => isOf(address)));
}

/**
 * Returns leases for addresses that are published without one, as in the first pass over an adopted cluster or after the table
 * lost an item: they expire now, and two misses remove an address.
 */
export function rememberedLeases(
  unleased: readonly ExpectedAddress[],
  { families, outcomes, nowMs }: Pick<LeaseObservation, 'families' | 'outcomes' | 'nowMs'>,
): LeaseChanges {
  const remembered = families.flatMap(({ isOf }) => {
    const isProven = isAnyAnswered(outcomesOf(outcomes, isOf));
    const ofFamily = unleased.filter(({ address }) => isOf(address));
    return ofFamily.flatMap((known) => rememberedLease(known, outcomes.get(known.address), isProven, nowMs));
  });
  return new Map(remembered.map((lease) => [lease.address, lease]));
}

function rememberedLease(
  { address, kind, host }: ExpectedAddress,
  outcome: ProbeOutcome | undefined,
  isProven: boolean,
  nowMs: number,
): Lease[] {
  if (outcome !== undefined && verdictFor(kind, outcome) === 'shuttingDown') return [];
  const isMissed = outcome?.verdict === 'error' || (outcome?.verdict === 'silence' && isProven);
  const lease = { ...newLease(address), generation: 1, ...(host !== undefined && { host }), expiresAtMs: nowMs };
  return [
    {
      ...lease,
      ...(isMissed && { misses: 1, missedAtMs: nowMs }),
      ...(outcome && { lastProbe: shortDetail(outcome) }),
    },
  ];
}

/** Returns whether to delete a probed lease outside the spec: at once if another address is live, or else when it expires. */
function departs(lease: Lease, othersLive: boolean, { spec, nowMs }: LeaseObservation): boolean {
  if (isWithdrawn(lease, nowMs)) return false;
  if (lease.expiresAtMs <= nowMs) return true;
  // A former record of a host name of the spec.
  const lapses = spec.apiServers.some((server) => 'host' in server && server.host === lease.host);
  return othersLive && !lapses;
}

/** Returns the addresses of the spec, and those that leases have for its host names. */
export function knownAddresses({ apiServers }: ClusterSpec, leases: readonly Lease[]): ExpectedAddress[] {
  const hosts = new Set(apiServers.flatMap((server) => ('host' in server ? server.host : [])));
  const named = apiServers.flatMap((server): ExpectedAddress[] => ('address' in server ? [server] : []));
  const isNamed = new Set(named.map(({ address }) => address));
  const resolved = leases.flatMap(({ address, host }): ExpectedAddress[] =>
    host !== undefined && hosts.has(host) && !isNamed.has(address) ? [{ address, host, kind: 'shared' }] : [],
  );
  return [...named, ...resolved];
}

/**
 * Returns the addresses to publish, in byte order. An address that is probed stays after its lease expired until two probes
 * missed, so that no outage of ours removes a healthy server; an address that is not in the spec is removed by expiry alone.
 */
export function publishedAddresses(
  leases: readonly Lease[],
  expected: readonly ExpectedAddress[],
  nowMs: number,
): string[] {
  const probed = new Set(expected.map(({ address }) => address));
  return leases
    .filter((lease) => isPublished(lease, probed.has(lease.address), nowMs))
    .map(({ address }) => address)
    .sort();
}

/**
 * Returns the addresses that must not be published. The master-count reconciler has no leases: it removes only an address
 * that was withdrawn or reported its shutdown, and one that crashed stays until another takes its place.
 */
export function excludedAddresses(
  leases: readonly Lease[],
  live: readonly string[],
  reconciler: EndpointReconcilerType,
  nowMs: number,
): string[] {
  const isKnown = (lease: Lease) =>
    reconciler !== 'master-count' || lease.state === 'shuttingDown' || isWithdrawn(lease, nowMs);
  const isLive = new Set(live);
  return leases.filter((lease) => !isLive.has(lease.address) && isKnown(lease)).map(({ address }) => address);
}

function isPublished(lease: Lease, probed: boolean, nowMs: number): boolean {
  // The first answer after a withdrawal ends this state: until then, the lease from before the withdrawal does not count.
  if (lease.state === 'withdrawn') return lease.source === 'agent' && isActive(lease, nowMs);
  return isActive(lease, nowMs) || (probed && lease.generation > 0 && !hasMissedTwice(lease));
}
