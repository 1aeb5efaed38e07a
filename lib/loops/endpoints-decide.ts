import { familyOf } from '../allocator/ip-address.ts';
import { RECORDS_OF_A_HOST } from '../api-servers/probe-addresses.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import {
  afterChanges,
  isActive,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
  withdrawnUntil,
} from '../cluster/lease.ts';
import { type ContestState, type ContestVerdict, judgeContest } from '../endpoints/contested-writes.ts';
import {
  EndpointsError,
  foreignSlice,
  noLiveLease,
  standingWithdrawals,
  twoOwners,
} from '../endpoints/endpoint-findings.ts';
import { endpointPorts, planService, type ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  outcomesOf,
  publishedAddresses,
  rememberedLease,
} from '../endpoints/lease-decisions.ts';
import {
  addressesIn,
  type EndpointSliceObject,
  type EndpointsObject,
  type PublishedFamily,
  type PublishedObjects,
  publishedFamilies,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { type FamilyObservation, isHarmful, type PlannedWrite, planWrites } from '../endpoints/plan-writes.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import { isOwnSecondSlice } from '../endpoints/slices.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';
import { isSameLease, leaseOf, type StoredLeases } from '../table/leases.ts';

/** The input of the decision. */
export interface World {
  readonly spec: ClusterSpec;
  readonly nowMs: number;
  /** The leases before the probes, and their decided changes. Some may not have been written. */
  readonly before: StoredLeases;
  readonly decided: LeaseChanges;
  /** The leases in the table, as far as this pass knows. */
  readonly stored: StoredLeases;
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Host names whose look-up failed. */
  readonly unresolved: readonly string[];
  /** One line for each written change of a lease. */
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
  readonly service: ServiceObject | undefined;
  readonly endpoints: EndpointsObject | undefined;
  /** The slices of the Service, and the slices with our names. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state after the last pass: of the Endpoints and their slice, and of the other slices. */
  readonly contest: ContestState;
  readonly slicesContest: ContestState;
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

/** The writes of the Endpoints and their slice, or of all other slices: another writer of these is judged as one. */
export interface Publication {
  readonly writes: readonly PlannedWrite[];
  /** The objects of the family as they were read. */
  readonly objects: PublishedObjects;
  /** Each address that the writes remove, with the reason. */
  readonly removals: readonly string[];
  /** Absent: there is no second family, and nothing is pruned. */
  readonly verdict: ContestVerdict | undefined;
}

interface Decided {
  readonly publication: Publication;
  readonly findings: readonly Finding[];
}

/** Decides all writes of a pass. */
export function decide(world: World): EndpointsPlan {
  const { spec, nowMs } = world;
  const { leases, expected, remembered } = leasesOf(world);
  const [first, other] = publishedFamilies(spec);
  const primary = serversOf(world, leases, expected, first);
  const second = other && serversOf(world, leases, expected, other);
  const refusal = primary.live.length === 0 ? noLiveLease(primary) : undefined;
  const endpoints =
    refusal === undefined ? publicationOf(world, leases, primary, world.contest) : unchanged(world, refusal);
  const slices = decideSlices(world, leases, primary, second);
  const service = planService(spec, world.service);
  const isAnyWrite = endpoints.publication.writes.length + slices.publication.writes.length > 0;
  return {
    isQuiet: refusal === undefined && !isAnyWrite && service === undefined && remembered.size === 0,
    service,
    remembered,
    endpoints: endpoints.publication,
    slices: slices.publication,
    counts: countsOf(world, expected, [...primary.live, ...(second?.live ?? [])]),
    findings: [
      ...world.findings,
      ...standingWithdrawals(spec.name, leases, nowMs),
      ...slices.findings,
      ...endpoints.findings,
    ],
    errors: refusal === undefined ? [] : [new EndpointsError('NoLiveLease', refusal.message)],
  };
}

function unchanged({ contest }: World, refusal: Finding): Decided {
  const verdict = { state: contest, corrects: false, withhold: false, twoOwners: false };
  return { publication: { writes: [], objects: {}, removals: [], verdict }, findings: [refusal] };
}

/** Decides whether the difference of the found objects is the change of another writer, and what to write. */
function publicationOf(
  world: World,
  leases: readonly Lease[],
  observation: FamilyObservation,
  before: ContestState,
  pruned: readonly EndpointSliceObject[] = [],
): Decided {
  const { spec, nowMs } = world;
  const { live, objects } = observation;
  const planned = live.length === 0 ? [] : planWrites(observation);
  const found = [...Object.values(objects), ...pruned];
  const judged = judgeContest(before, {
    wanted: JSON.stringify([live, endpointPorts(spec)]),
    differs: planned.length + pruned.length > 0,
    versions: versionsOf(found),
    urgent: planned.length > 0 && isHarmful(observation),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  // A foreign slice is always the change of another writer.
  const verdict = { ...judged, corrects: judged.corrects || pruned.length > 0 };
  const writes = verdict.withhold ? [] : [...planned, ...pruned.map(deletion)];
  return {
    publication: { writes, objects, removals: removalsOf(world, leases, objects, writes), verdict },
    findings: verdict.twoOwners ? [twoOwners(found, FIELD_MANAGER, verdict)] : [],
  };
}

function deletion(object: EndpointSliceObject) {
  return { verb: 'delete', object } as const;
}

export function versionsOf(objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}

/** The API servers of one family. */
type FamilyServers = ReturnType<typeof serversOf>;

function serversOf(
  world: World,
  all: readonly Lease[],
  expected: readonly ExpectedAddress[],
  published: PublishedFamily,
) {
  const { spec, nowMs, outcomes } = world;
  const { family } = published;
  // Active leases of a family that is no longer published may be left.
  const isOf = (address: string) => familyOf(address) === family;
  const leases = all.filter(({ address }) => isOf(address));
  const withdrawn = leases.flatMap((lease) => {
    const untilMs = withdrawnUntil(lease, nowMs);
    return untilMs === undefined ? [] : [[lease.address, new Date(untilMs).toISOString()] as const];
  });
  // None without an active lease.
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  return {
    ...{ spec, family, objects: objectsOf(world, published), live, excluded },
    ...{ cluster: spec.name, outcomes: outcomesOf(outcomes, isOf), withdrawn: new Map(withdrawn) },
  };
}

function objectsOf({ endpoints, slices }: World, { refs }: PublishedFamily): PublishedObjects {
  const slice = slices.find(({ metadata }) => metadata.name === refs.EndpointSlice.name);
  return { ...(refs.Endpoints && { Endpoints: endpoints }), EndpointSlice: slice };
}

/**
 * Decides the slices besides the one that mirrors the Endpoints. Without a live address the slice of the second family stays
 * unchanged, as the Endpoints do: only a spec that no longer asks for both families deletes it.
 */
function decideSlices(
  world: World,
  leases: readonly Lease[],
  primary: FamilyServers,
  second: FamilyServers | undefined,
): Decided {
  const { spec, slices, slicesContest } = world;
  const foreign = slices.filter((slice) => foreignSlice(slice).length > 0);
  const pruned = spec.endpoints.prune ? foreign.filter((slice) => isPrunable(slice, primary, second)) : [];
  const observation = second ?? { ...primary, objects: {}, live: [], excluded: [] };
  const { publication, findings } = publicationOf(world, leases, observation, slicesContest, pruned);
  const names: readonly string[] = publishedFamilies(spec).map(({ refs }) => refs.EndpointSlice.name);
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && !names.includes(slice.metadata.name));
  const isJudged = spec.endpoints.prune === true || second !== undefined;
  const kept = publication.verdict?.withhold ? foreign : foreign.filter((slice) => !pruned.includes(slice));
  return {
    publication: {
      ...publication,
      writes: [...publication.writes, ...unwanted.map(deletion)],
      verdict: isJudged ? publication.verdict : undefined,
    },
    findings: [
      ...kept.flatMap((slice) => foreignSlice(slice, spec.endpoints.prune)),
      ...(second !== undefined && second.live.length === 0 ? [noLiveLease(second, second.family)] : []),
      ...findings,
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
  const { spec, stored, nowMs, outcomes } = world;
  const families = publishedFamilies(spec);
  const published = new Set(families.flatMap((family) => addressesIn(Object.values(objectsOf(world, family))[0])));
  const expected = [...world.expected, ...ofUnresolvedHost(world, published)];
  const unleased = expected.filter(({ address }) => published.has(address) && leaseOf(stored, address) === undefined);
  const remembered: LeaseChanges = new Map(
    families.flatMap(({ isOf }) =>
      unleased
        .filter(({ address }) => isOf(address))
        .map((known) => rememberedLease(known, { outcomes: outcomesOf(outcomes, isOf), nowMs }))
        .flatMap((lease) => (lease === undefined ? [] : [[lease.address, lease] as const])),
    ),
  );
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
function unlessUnwritten(lease: Lease, { before, decided, nowMs }: World): Lease {
  const seen = decided.get(lease.address);
  const isUnwritten = isSameLease(leaseOf(before, lease.address), lease);
  return isUnwritten && seen !== undefined && isActive(seen, nowMs) && !isWithdrawn(lease, nowMs) ? seen : lease;
}

function countsOf({ outcomes }: World, expected: readonly ExpectedAddress[], live: readonly string[]) {
  const lateProbes = [...outcomes.values()].filter(({ late }) => late).length;
  return { addresses: expected.length, activeLeases: live.length, ...(lateProbes > 0 && { lateProbes }) };
}

/** Returns one line for each address that is removed from the endpoints: `10.0.0.2 from the endpoints: its lease expired; ...`. */
function removalsOf(
  { outcomes, nowMs }: World,
  leases: readonly Lease[],
  objects: PublishedObjects,
  writes: readonly PlannedWrite[],
): string[] {
  const [kind, before] = Object.entries(objects)[0] ?? [];
  const write = writes.find(({ verb, object }) => (verb === 'create' || verb === 'update') && object?.kind === kind);
  if (write === undefined) return [];
  const isLeft = new Set(addressesIn(write.object));
  const removed = [...new Set(addressesIn(before))].filter((address) => !isLeft.has(address));
  return removed.map((address) => {
    const lease = leases.find((known) => known.address === address);
    const detail = outcomes.get(address)?.detail ?? lease?.lastProbe;
    return `${address} from the endpoints: ${removalReason(lease, detail, nowMs)}`;
  });
}

function removalReason(lease: Lease | undefined, detail: string | undefined, nowMs: number): string {
  if (lease === undefined) return detail ?? 'it is not an API server of the spec';
  const untilMs = withdrawnUntil(lease, nowMs);
  if (untilMs !== undefined) return `it is deregistered until ${new Date(untilMs).toISOString()}`;
  const expired = `its lease expired at ${new Date(lease.expiresAtMs).toISOString()}`;
  const cause = lease.source === 'agent' && detail === undefined ? 'its agent does not refresh it' : detail;
  return cause === undefined ? expired : `${expired}; ${cause}`;
}
