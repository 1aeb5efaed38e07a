import { familyOf } from '../allocator/ip-address.ts';
import { addressesIn, type ReadFamily } from '../cluster/published-objects.ts';
import { afterChanges, isActive, isWithdrawn, type Lease, type LeaseChanges } from '../leases/lease.ts';
import { hasMissedTwice, newLease } from '../leases/lease-states.ts';
import { isAnyAnswered, outcomesOf, type ProbeOutcome, shortDetail, verdictFor } from '../leases/probe-outcome.ts';
import type { ApiServerKind, ClusterSpec, EndpointReconcilerType } from '../spec/cluster-spec.ts';
import { RECORDS_OF_A_HOST } from '../util/bounds.ts';
import { defined } from '../util/values.ts';

/** An address of the spec, or an address of a source in the spec, such as a host name. */
export interface ExpectedAddress {
  /** The canonical text of the address. */
  readonly address: string;
  readonly kind: ApiServerKind;
  readonly host?: string;
}

export interface ServersSeen {
  readonly spec: ClusterSpec;
  readonly nowMs: number;
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** The published families. The first family has Endpoints. */
  readonly families: readonly [ReadFamily, ...ReadFamily[]];
  readonly stored: { readonly leases: readonly Lease[] };
  /** The unwritten lease changes, without leases that another writer changed (misses and probe results do not count). */
  readonly unwritten: LeaseChanges;
  /** The sources of addresses, such as host names, whose look-up failed. */
  readonly unresolved: readonly string[];
}

/** The API servers of one family, and the addresses that are published. */
export interface FamilyServers extends ReadFamily, Pick<ServersSeen, 'spec' | 'nowMs' | 'outcomes'> {
  /** The addresses to publish, in byte order. */
  readonly live: readonly string[];
  /** The addresses that have a lease and must not be published. */
  readonly excluded: readonly string[];
  readonly leases: readonly Lease[];
}

export function publishedServers(seen: ServersSeen) {
  const { families, stored } = seen;
  const publishedOf = ({ objects, isOf }: ReadFamily) => Object.values(objects).flatMap(addressesIn).filter(isOf);
  const published = new Set(families.flatMap(publishedOf));
  const byAddress = new Map(stored.leases.map((lease) => [lease.address, lease]));
  const expected = [...seen.expected, ...ofUnresolvedHost(seen, published, byAddress)];
  const present = stored.leases.map((lease) => (published.has(lease.address) ? unlessUnwritten(lease, seen) : lease));
  const unleased = expected.filter(({ address }) => published.has(address) && !byAddress.has(address));
  const remembered = rememberedLeases(unleased, seen);
  const leases = afterChanges(present, remembered);
  const [first, other] = families;
  return {
    primary: serversOf(first, seen, leases, expected),
    second: other && serversOf(other, seen, leases, expected),
    leases,
    remembered,
    /** The number of expected addresses, including those that `ofUnresolvedHost` returns. */
    addresses: expected.length,
  };
}

/** Returns the published addresses that may belong to the first source whose look-up failed. Their `host` is this source. */
function ofUnresolvedHost(
  { unresolved, expected }: ServersSeen,
  published: ReadonlySet<string>,
  leases: ReadonlyMap<string, Lease>,
): ExpectedAddress[] {
  const [host] = unresolved;
  if (host === undefined) return [];
  const isExpected = new Set(expected.map(({ address }) => address));
  return [...published]
    .filter((address) => !isExpected.has(address) && (leases.get(address)?.host ?? host) === host)
    .slice(0, RECORDS_OF_A_HOST)
    .map((address) => ({ address, kind: 'shared', host }));
}

/** Returns the unwritten lease if it is active and the stored one is not withdrawn: a lost write must not hide a live server. */
function unlessUnwritten(lease: Lease, { unwritten, nowMs }: ServersSeen): Lease {
  const seen = unwritten.get(lease.address);
  return seen !== undefined && isActive(seen, nowMs) && !isWithdrawn(lease, nowMs) ? seen : lease;
}

/** Returns leases for published addresses that have no lease. The new leases expire at once, so two misses remove an address. */
function rememberedLeases(
  unleased: readonly ExpectedAddress[],
  { families, outcomes, nowMs }: ServersSeen,
): LeaseChanges {
  const isProven = families.map(({ isOf }) => isAnyAnswered(outcomesOf(outcomes, isOf)));
  const remembered = unleased.flatMap(({ address, kind, host }): [string, Lease][] => {
    const outcome = outcomes.get(address);
    if (outcome !== undefined && verdictFor(kind, outcome) === 'shuttingDown') return [];
    const isSilenceProven = isProven[families.findIndex(({ isOf }) => isOf(address))];
    const isMissed = outcome?.verdict === 'error' || (outcome?.verdict === 'silence' && isSilenceProven);
    const lease: Lease = {
      ...newLease(address),
      generation: 1,
      expiresAtMs: nowMs,
      ...defined({ host }),
      ...(isMissed && { misses: 1, missedAtMs: nowMs }),
      ...(outcome && { lastProbe: shortDetail(outcome) }),
    };
    return [[address, lease]];
  });
  return new Map(remembered);
}

function serversOf(
  family: ReadFamily,
  { spec, nowMs, outcomes }: ServersSeen,
  all: readonly Lease[],
  expected: readonly ExpectedAddress[],
): FamilyServers {
  // Not `family.isOf`, because a family that is no longer published may still have active leases.
  const isOf = (address: string) => familyOf(address) === family.family;
  const leases = all.filter(({ address }) => isOf(address));
  // If no lease is active, no address counts as live, so that the endpoints stay unchanged.
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  return { ...family, spec, nowMs, live, excluded, leases, outcomes: outcomesOf(outcomes, isOf) };
}

/** The maximum difference between two clocks: that of an agent, and that of the host that undoes a deregistration. */
const CLOCKS_DIFFER_MS = 4_000;

/**
 * Returns the addresses to publish, in byte order. If the lease of a probed address expires, the address stays published until
 * two probes miss, so that an outage of this project removes no healthy server. An address outside the spec is removed as soon
 * as its lease expires.
 */
export function publishedAddresses(
  leases: readonly Lease[],
  expected: readonly { readonly address: string }[],
  nowMs: number,
): string[] {
  const probed = new Set(expected.map(({ address }) => address));
  return leases
    .filter((lease) => isPublished(lease, probed.has(lease.address), nowMs))
    .map(({ address }) => address)
    .sort();
}

/**
 * Returns the addresses that must not be published. Upstream's master-count reconciler has no leases: a crashed server stays
 * until another address takes its place, and only a withdrawal or a reported shutdown excludes an address.
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
  if (isWithdrawn(lease, nowMs)) return false;
  // An answer after the end of the withdrawal changes the state `withdrawn`. Until then only the refresh of an agent counts.
  if (lease.state === 'withdrawn' && lease.source !== 'agent') return false;
  if (isActive(lease, nowMs)) return true;
  const wasActive = lease.state !== 'withdrawn' || lease.expiresAtMs > lease.withdrawnUntilMs + CLOCKS_DIFFER_MS;
  return wasActive && probed && lease.generation > 0 && !hasMissedTwice(lease);
}

/** Returns the addresses of the spec, and the addresses of leases that belong to its host names. */
export function knownAddresses({ apiServers }: ClusterSpec, leases: readonly Lease[]): ExpectedAddress[] {
  const hosts = new Set(apiServers.flatMap((server) => ('host' in server ? server.host : [])));
  const named = apiServers.flatMap((server): ExpectedAddress[] => ('address' in server ? [server] : []));
  const isNamed = new Set(named.map(({ address }) => address));
  const resolved = leases.flatMap(({ address, host }): ExpectedAddress[] =>
    host !== undefined && hosts.has(host) && !isNamed.has(address) ? [{ address, host, kind: 'shared' }] : [],
  );
  return [...named, ...resolved];
}
