import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
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
  familyTests,
  isOwnSecondSlice,
  publishedFamilies,
  secondFamily,
  secondSlice,
  sliceRef,
} from '../endpoints/dual-stack.ts';
import {
  EndpointsError,
  foreignSlice,
  noLiveLease,
  standingWithdrawals,
  twoOwners,
} from '../endpoints/endpoint-findings.ts';
import { type SliceWrite, sliceAddresses, sliceWrite } from '../endpoints/endpoint-slice.ts';
import { endpointPorts, planService, type ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  outcomesOf,
  publishedAddresses,
  rememberedLease,
} from '../endpoints/lease-decisions.ts';
import {
  type EndpointSliceObject,
  type EndpointsObject,
  isNamedAsOurs,
  KUBERNETES_SERVICE,
  readyAddresses,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { isHarmful, isUrgent, planEndpoints, plansWrite } from '../endpoints/plan-endpoints.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { EndpointsDecision } from '../endpoints/reconcilers.ts';
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
  /** The write of Endpoints and slice. */
  readonly publication?: Publication;
  readonly slices: SlicesPlan;
  /** The state for the next pass, unless the pass writes a publication. */
  readonly contest: ContestState;
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly errors: readonly Error[];
}

export interface Publication {
  readonly endpoints: Exclude<EndpointsDecision, { readonly outcome: 'nothing' | 'refused' }>;
  readonly slice: EndpointSliceObject | undefined;
  readonly verdict: ContestVerdict;
  /** The addresses and ports of the write, as the next passes compare them. */
  readonly wanted: string;
  /** Each address that the write removes, with the reason. */
  readonly removals: readonly string[];
}

/** The writes of the slices besides the one that mirrors the Endpoints. */
export interface SlicesPlan extends Pick<Publication, 'wanted' | 'removals'> {
  readonly writes: readonly SliceWrite[];
  /** The slice of the second family as it was read. */
  readonly current: EndpointSliceObject | undefined;
  /** Absent: there is no second family, and nothing is pruned. */
  readonly verdict: ContestVerdict | undefined;
}

/** Decides all writes of a pass. */
export function decide(world: World): EndpointsPlan {
  const { spec, nowMs, endpoints: current, slices } = world;
  const { leases, expected, remembered } = leasesOf(world);
  // Active leases of a family that is no longer published may be left.
  const servers = publishedFamilies(spec).map((family) => serversOf(world, leases, expected, family));
  const [primary] = servers;
  if (primary === undefined) throw new TypeError('the cluster spec was not validated: it has no range');
  const { live, excluded } = primary;
  const others = decideSlices(world, leases, servers);
  const slice = slices.find(isNamedAsOurs);
  const observation = { spec, current, slice, live, excluded };
  const endpoints = planEndpoints(observation);
  const service = planService(spec, world.service);
  const differs = plansWrite(endpoints, slice, spec.endpoints.prune);
  const isAnyWrite = differs || others.plan.writes.length > 0 || service !== undefined || remembered.size > 0;
  const plan = {
    isQuiet: endpoints.outcome !== 'refused' && !isAnyWrite,
    service,
    slices: others.plan,
    remembered,
    contest: world.contest,
    counts: countsOf(world, expected, [...live, ...others.live]),
    findings: [...world.findings, ...standingWithdrawals(spec.name, leases, nowMs), ...others.findings],
    errors: [],
  };
  if (endpoints.outcome === 'nothing') return plan;
  if (endpoints.outcome === 'refused') {
    const finding = noLiveLease(primary);
    const error = new EndpointsError('NoLiveLease', finding.message);
    return { ...plan, findings: [...plan.findings, finding], errors: [error] };
  }

  const found = [current, slice];
  const { wanted, verdict, owners } = judge(world, world.contest, live, found, differs, isUrgent(observation));
  const judged = { ...plan, contest: verdict.state, findings: [...plan.findings, ...owners] };
  if (!differs || verdict.withhold) return judged;
  const removals = removalsOf(world, leases, readyAddresses(current), readyAddresses(endpoints.endpoints));
  return { ...judged, publication: { endpoints, slice, verdict, wanted, removals } };
}

/** Decides whether the difference of the found objects is the change of another writer, and what to report of that. */
function judge(
  { spec, nowMs }: World,
  before: ContestState,
  live: readonly string[],
  found: readonly (KubernetesObject | undefined)[],
  differs: boolean,
  urgent: boolean,
) {
  const wanted = JSON.stringify([live, endpointPorts(spec)]);
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const versions = versionsOf(...found);
  const verdict = judgeContest(before, { wanted, differs, versions, urgent, nowMs, intervalMs });
  return { wanted, verdict, owners: verdict.twoOwners ? [twoOwners(found, FIELD_MANAGER, verdict)] : [] };
}

export function versionsOf(...objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}

/** The API servers of one family. */
type FamilyServers = ReturnType<typeof serversOf>;

function serversOf(
  { spec, nowMs, outcomes }: World,
  all: readonly Lease[],
  expected: readonly ExpectedAddress[],
  family: IPFamily,
) {
  const isOf = (address: string) => familyOf(address) === family;
  const leases = all.filter(({ address }) => isOf(address));
  const withdrawn = leases.flatMap((lease) => {
    const untilMs = withdrawnUntil(lease, nowMs);
    return untilMs === undefined ? [] : [[lease.address, new Date(untilMs).toISOString()] as const];
  });
  // None without an active lease.
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  return { cluster: spec.name, live, excluded, outcomes: outcomesOf(outcomes, isOf), withdrawn: new Map(withdrawn) };
}

/**
 * Decides the slices besides the one that mirrors the Endpoints. Without a live address the slice of the second family stays
 * unchanged, as the Endpoints do: only a spec that no longer asks for both families deletes it.
 */
function decideSlices(world: World, leases: readonly Lease[], servers: readonly FamilyServers[]) {
  const { spec, slices } = world;
  const second = secondOf(world, servers[1]);
  const { live, current, write } = second;
  const foreign = slices.filter((slice) => foreignSlice(slice).length > 0);
  const pruned = foreign.filter((slice) => isPruned(slice, spec, servers));
  const differs = write.length + pruned.length > 0;
  const urgent = write.length > 0 && isHarmful(sliceAddresses(current), servers[1]?.excluded ?? []);
  const { wanted, verdict, owners } = judge(world, world.slicesContest, live, [current, ...pruned], differs, urgent);
  const isDecided = spec.endpoints.prune === true || servers.length > 1;
  const deleted = [...(verdict.withhold ? [] : pruned), ...second.unwanted];
  const plan: SlicesPlan = {
    writes: [...(verdict.withhold ? [] : write), ...deleted.map((object) => ({ verb: 'delete', object }) as const)],
    current,
    wanted,
    // A foreign slice is always the change of another writer.
    verdict: isDecided ? { ...verdict, corrects: verdict.corrects || pruned.length > 0 } : undefined,
    removals: live.length === 0 ? [] : removalsOf(world, leases, sliceAddresses(current), live),
  };
  const kept = foreign.filter((slice) => !deleted.includes(slice));
  const reports = kept.flatMap((slice) => foreignSlice(slice, spec.endpoints.prune));
  return { plan, live, findings: [...reports, ...second.findings, ...(isDecided ? owners : [])] };
}

/** Returns the slice of the second family and its write, and the slices of ours that the spec no longer asks for. */
function secondOf({ spec, slices }: World, servers: FamilyServers | undefined) {
  const family = secondFamily(spec);
  const name = family && sliceRef(family).name;
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && slice.metadata.name !== name);
  const none = { unwanted, current: undefined, live: [], write: [], findings: [] };
  if (family === undefined || servers === undefined) return none;
  const current = slices.find((slice) => slice.metadata.name === name);
  const { live } = servers;
  if (live.length === 0) return { ...none, current, findings: [noLiveLease(servers, family)] };
  const write = sliceWrite(secondSlice(spec, family, live), current);
  return { ...none, current, live, write: write === undefined ? [] : [write] };
}

/** Whether to delete a foreign slice: not one of a family that is to be published and has no live address. */
function isPruned(slice: EndpointSliceObject, spec: ClusterSpec, servers: readonly FamilyServers[]): boolean {
  const families = publishedFamilies(spec);
  const names: readonly string[] = [
    KUBERNETES_SERVICE.name,
    ...families.slice(1).map((family) => sliceRef(family).name),
  ];
  const isNeeded = families.some((family, at) => family === slice.addressType && servers[at]?.live.length === 0);
  return spec.endpoints.prune === true && !names.includes(slice.metadata.name) && !isNeeded;
}

/**
 * Returns the leases by which the pass decides. An address that is published without a lease gets one, so that neither one
 * lost probe nor one lost write removes it. Where a look-up failed, the address may be of that host.
 */
function leasesOf(world: World) {
  const { spec, stored, endpoints, slices, expected, unresolved, nowMs, outcomes } = world;
  const second = secondFamily(spec);
  const isSecond = ({ metadata }: EndpointSliceObject) =>
    second !== undefined && metadata.name === sliceRef(second).name;
  const published = new Set([...readyAddresses(endpoints), ...slices.filter(isSecond).flatMap(sliceAddresses)]);
  const isExpected = new Set(expected.map(({ address }) => address));
  const ofHost = unresolved.slice(0, 1).flatMap((host) => {
    const known = (address: string) => leaseOf(stored, address);
    const unknown = [...published].filter(
      (address) => !isExpected.has(address) && (known(address)?.host ?? host) === host,
    );
    return unknown.slice(0, RECORDS_OF_A_HOST).map((address) => ({ address, kind: 'shared', host }) as const);
  });
  const all: readonly ExpectedAddress[] = [...expected, ...ofHost];
  const unleased = all.filter(({ address }) => published.has(address) && leaseOf(stored, address) === undefined);
  const remembered: LeaseChanges = new Map(
    familyTests(spec).flatMap((isOf) =>
      unleased
        .filter(({ address }) => isOf(address))
        .map((known) => rememberedLease(known, { outcomes: outcomesOf(outcomes, isOf), nowMs }))
        .flatMap((lease) => (lease === undefined ? [] : [[lease.address, lease] as const])),
    ),
  );
  const leases = stored.leases.map((lease) => (published.has(lease.address) ? unlessUnwritten(lease, world) : lease));
  return { leases: afterChanges(leases, remembered), expected: all, remembered };
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
  before: readonly string[],
  after: readonly string[],
): string[] {
  const isLeft = new Set(after);
  const removed = [...new Set(before)].filter((address) => !isLeft.has(address));
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
