import { RECORDS_OF_A_HOST } from '../api-servers/probe-addresses.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  afterChanges,
  isActive,
  isWithdrawn,
  type Lease,
  type LeaseChanges,
  withdrawnUntil,
} from '../cluster/lease.ts';
import { type ContestState, type ContestVerdict, judgeContest } from '../endpoints/contested-writes.ts';
import { familyTests, publishedFamilies, secondFamily, sliceRef } from '../endpoints/dual-stack.ts';
import { EndpointsError, noLiveLease, standingWithdrawals, twoOwners } from '../endpoints/endpoint-findings.ts';
import { sliceAddresses } from '../endpoints/endpoint-slice.ts';
import { endpointPorts, planService, type ServiceWrite } from '../endpoints/kubernetes-service.ts';
import { type ExpectedAddress, outcomesOf, rememberedLease } from '../endpoints/lease-decisions.ts';
import {
  type EndpointSliceObject,
  type EndpointsObject,
  isNamedAsOurs,
  readyAddresses,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { isUrgent, planEndpoints, plansWrite } from '../endpoints/plan-endpoints.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { EndpointsDecision } from '../endpoints/reconcilers.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';
import { isSameLease, leaseOf, type StoredLeases } from '../table/leases.ts';
import { decideSlices, type SlicesPlan, type SlicesWorld, serversOf, versionsOf } from './slices-decide.ts';

/** The leases and probe outcomes of the API servers in a pass. */
export interface ObservedServers {
  /** The leases in the table, as far as this pass knows. */
  readonly stored: StoredLeases;
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Host names whose look-up failed. */
  readonly unresolved: readonly string[];
  /** The decided changes of the leases in `before`. Some may not have been written. */
  readonly decided: LeaseChanges;
  readonly before: StoredLeases;
  /** One line for each written change of a lease. */
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
}

export interface World extends ObservedServers, SlicesWorld {
  readonly service: ServiceObject | undefined;
  readonly endpoints: EndpointsObject | undefined;
  /** The state after the last pass. */
  readonly contest: ContestState;
}

export interface EndpointsPlan {
  /** The pass has nothing to write, and publishing is not refused: it decides only once. */
  readonly isQuiet: boolean;
  readonly service: ServiceWrite | undefined;
  /** Leases of addresses that are published without one. */
  readonly remembered: LeaseChanges;
  /** The write of Endpoints and slice. */
  readonly publication?: Publication;
  /** The writes of the other slices. */
  readonly slices: SlicesPlan & { readonly removals: readonly string[] };
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

/** Decides all writes of a pass. */
export function decide(world: World): EndpointsPlan {
  const { spec, nowMs, endpoints: current, slices, contest } = world;
  const { leases, expected, remembered } = leasesOf(world);
  // Active leases of a family that is no longer published may be left.
  const servers = publishedFamilies(spec).map((family) => serversOf(world, { leases, expected }, family));
  const [primary] = servers;
  if (primary === undefined) throw new TypeError('the cluster spec was not validated: it has no range');
  const { live, excluded } = primary;
  const others = decideSlices(world, servers);
  // Without a live address the slice stays.
  const left = others.live.length === 0 ? [] : sliceAddresses(others.current);
  const slice = slices.find(isNamedAsOurs);
  const observation = { spec, current, slice, live, excluded };
  const endpoints = planEndpoints(observation);
  const service = planService(spec, world.service);
  const differs = plansWrite(endpoints, slice);
  const plan = {
    isQuiet:
      endpoints.outcome !== 'refused' &&
      !differs &&
      others.writes.length === 0 &&
      service === undefined &&
      remembered.size === 0,
    service,
    slices: { ...others, removals: removalsOf(world, leases, left, others.live) },
    remembered,
    contest,
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

  const wanted = JSON.stringify([live, endpointPorts(spec)]);
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const urgent = isUrgent(observation);
  const verdict = judgeContest(contest, {
    wanted,
    differs,
    versions: versionsOf(current, slice),
    urgent,
    nowMs,
    intervalMs,
  });
  const owners = verdict.twoOwners ? [twoOwners([current, slice], FIELD_MANAGER, verdict)] : [];
  const judged = { ...plan, contest: verdict.state, findings: [...plan.findings, ...owners] };
  if (!differs || verdict.withhold) return judged;
  const removals = removalsOf(world, leases, readyAddresses(current), readyAddresses(endpoints.endpoints));
  return { ...judged, publication: { endpoints, slice, verdict, wanted, removals } };
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
