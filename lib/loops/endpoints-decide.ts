import { familyOf } from '../allocator/ip-address.ts';
import { RECORDS_OF_A_HOST } from '../api-servers/probe-addresses.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import { afterChanges, isActive, isWithdrawn, type Lease, type LeaseChanges } from '../cluster/lease.ts';
import type { ContestState } from '../endpoints/contested-writes.ts';
import { EndpointsError, foreignSlice, noLiveLease, standingWithdrawals } from '../endpoints/endpoint-findings.ts';
import { planService, type ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  outcomesOf,
  publishedAddresses,
  rememberedLeases,
} from '../endpoints/lease-decisions.ts';
import {
  addressesIn,
  type EndpointSliceObject,
  type PublishedFamily,
  type PublishedObjects,
  type ServiceObject,
} from '../endpoints/objects.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import { deletion, type FamilyServers, type Publication, publicationOf } from '../endpoints/publication.ts';
import { isOwnSecondSlice } from '../endpoints/slices.ts';
import { leaseOf, type StoredLeases } from '../table/leases.ts';

/** The input of the decision. */
export interface World {
  readonly spec: ClusterSpec;
  readonly nowMs: number;
  /** The published families, and their objects as they were read. */
  readonly families: readonly [ReadFamily, ...ReadFamily[]];
  /** The leases in the table, as far as this pass knows. */
  readonly stored: StoredLeases;
  /** The changes by the probes that could not be written, of leases that no other writer changed. */
  readonly unwritten: LeaseChanges;
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Host names whose look-up failed. */
  readonly unresolved: readonly string[];
  /** One line for each written change of a lease. */
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
  readonly service: ServiceObject | undefined;
  /** The slices of the Service, and the slices with our names. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state after the last pass: of the Endpoints and their slice, and of the other slices. */
  readonly contest: ContestState;
  readonly slicesContest: ContestState;
}

export interface ReadFamily extends PublishedFamily {
  readonly objects: PublishedObjects;
}

export interface EndpointsPlan {
  /** The pass has nothing to write, and publishing is not refused: it decides only once. */
  readonly isQuiet: boolean;
  readonly service: ServiceWrite | undefined;
  /** Leases of addresses that are published without one. */
  readonly remembered: LeaseChanges;
  readonly endpoints: Publication;
  readonly slices: Publication;
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly errors: readonly Error[];
}

/** Decides all writes of a pass. */
export function decide(world: World): EndpointsPlan {
  const { spec, nowMs, families } = world;
  const { leases, expected, remembered } = leasesOf(world);
  const [first, other] = families;
  const primary = serversOf(world, leases, expected, first);
  const second = other && serversOf(world, leases, expected, other);
  const refusal = primary.live.length === 0 ? noLiveLease(primary) : undefined;
  const endpoints = refusal === undefined ? publicationOf(primary, world.contest) : unchanged(world, refusal);
  const slices = decideSlices(world, primary, second);
  const counts = countsOf(world, expected, [...primary.live, ...(second?.live ?? [])]);
  const service = planService(spec, world.service);
  const isAnyWrite = endpoints.writes.length + slices.writes.length > 0;
  return {
    isQuiet: refusal === undefined && !isAnyWrite && service === undefined && remembered.size === 0,
    ...{ service, remembered, endpoints, slices, counts },
    findings: [
      ...world.findings,
      ...standingWithdrawals(spec.name, leases, nowMs),
      ...slices.findings,
      ...endpoints.findings,
    ],
    errors: refusal === undefined ? [] : [new EndpointsError('NoLiveLease', refusal.message)],
  };
}

function unchanged({ contest }: World, refusal: Finding): Publication {
  const verdict = { state: contest, corrects: false, withhold: false, twoOwners: false };
  return { writes: [], objects: {}, removals: [], verdict, findings: [refusal] };
}

function serversOf(
  world: World,
  all: readonly Lease[],
  expected: readonly ExpectedAddress[],
  { family, objects }: ReadFamily,
): FamilyServers {
  const { spec, nowMs } = world;
  // Active leases of a family that is no longer published may be left.
  const isOf = (address: string) => familyOf(address) === family;
  const leases = all.filter(({ address }) => isOf(address));
  // None without an active lease.
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  const outcomes = outcomesOf(world.outcomes, isOf);
  return { spec, nowMs, family, objects, live, excluded, leases, outcomes };
}

/**
 * Decides the slices besides the one that mirrors the Endpoints. Without a live address the slice of the second family stays
 * unchanged, as the Endpoints do: only a spec that no longer asks for both families deletes it.
 */
function decideSlices(world: World, primary: FamilyServers, second: FamilyServers | undefined): Publication {
  const { spec, families, slices, slicesContest } = world;
  const foreign = slices.filter((slice) => foreignSlice(slice).length > 0);
  const pruned = spec.endpoints.prune ? foreign.filter((slice) => isPrunable(slice, primary, second)) : [];
  const observation = second ?? { ...primary, objects: {}, live: [], excluded: [] };
  const publication = publicationOf(observation, slicesContest, pruned);
  const names: readonly string[] = families.map(({ refs }) => refs.EndpointSlice.name);
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && !names.includes(slice.metadata.name));
  const isJudged = spec.endpoints.prune === true || second !== undefined;
  const kept = publication.verdict?.withhold ? foreign : foreign.filter((slice) => !pruned.includes(slice));
  return {
    ...publication,
    writes: [...publication.writes, ...unwanted.map(deletion)],
    verdict: isJudged ? publication.verdict : undefined,
    findings: [
      ...kept.flatMap((slice) => foreignSlice(slice, spec.endpoints.prune)),
      ...(second !== undefined && second.live.length === 0 ? [noLiveLease(second, second.family)] : []),
      ...publication.findings,
    ],
  };
}

/** Whether to delete a foreign slice: not one of a family that is to be published and has no live address. */
function isPrunable(
  { metadata, addressType }: EndpointSliceObject,
  ...families: readonly (FamilyServers | undefined)[]
) {
  const servers = families.filter((family) => family !== undefined);
  const isOurs = servers.some(({ objects }) => objects.EndpointSlice?.metadata.name === metadata.name);
  return !isOurs && !servers.some(({ family, live }) => family === addressType && live.length === 0);
}

/**
 * Returns the leases by which the pass decides. An address that is published without a lease gets one, so that neither one
 * lost probe nor one lost write removes it.
 */
function leasesOf(world: World) {
  const { families, stored } = world;
  const published = new Set(families.flatMap(({ objects }) => addressesIn(Object.values(objects)[0])));
  const expected = [...world.expected, ...ofUnresolvedHost(world, published)];
  const unleased = expected.filter(({ address }) => published.has(address) && leaseOf(stored, address) === undefined);
  const remembered = rememberedLeases(unleased, world);
  const leases = stored.leases.map((lease) => (published.has(lease.address) ? unlessUnwritten(lease, world) : lease));
  return { leases: afterChanges(leases, remembered), expected, remembered };
}

/** Returns the published addresses that may be of a host whose look-up failed. */
function ofUnresolvedHost({ unresolved, expected, stored }: World, published: ReadonlySet<string>): ExpectedAddress[] {
  const [host] = unresolved;
  if (host === undefined) return [];
  const isExpected = new Set(expected.map(({ address }) => address));
  return [...published]
    .filter((address) => !isExpected.has(address) && (leaseOf(stored, address)?.host ?? host) === host)
    .slice(0, RECORDS_OF_A_HOST)
    .map((address) => ({ address, kind: 'shared', host }));
}

/**
 * A lost write removes no address that answered: a restored table may have an old withdrawal or old misses of it. The write
 * of another writer wins, and so does a withdrawal that is not over.
 */
function unlessUnwritten(lease: Lease, { unwritten, nowMs }: World): Lease {
  const seen = unwritten.get(lease.address);
  return seen !== undefined && isActive(seen, nowMs) && !isWithdrawn(lease, nowMs) ? seen : lease;
}

function countsOf({ outcomes }: World, expected: readonly ExpectedAddress[], live: readonly string[]) {
  const lateProbes = [...outcomes.values()].filter(({ late }) => late).length;
  return { addresses: expected.length, activeLeases: live.length, ...(lateProbes > 0 && { lateProbes }) };
}
