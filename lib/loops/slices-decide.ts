import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { isActive, type Lease, withdrawnUntil } from '../cluster/lease.ts';
import { type ContestState, type ContestVerdict, judgeContest } from '../endpoints/contested-writes.ts';
import { isOwnSecondSlice, publishedFamilies, secondFamily, secondSlice, sliceRef } from '../endpoints/dual-stack.ts';
import { foreignSlice, type NoLiveAddress, noLiveLease, twoOwners } from '../endpoints/endpoint-findings.ts';
import { type SliceWrite, sliceAddresses, sliceWrite } from '../endpoints/endpoint-slice.ts';
import { endpointPorts } from '../endpoints/kubernetes-service.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  outcomesOf,
  publishedAddresses,
} from '../endpoints/lease-decisions.ts';
import { type EndpointSliceObject, KUBERNETES_SERVICE } from '../endpoints/objects.ts';
import { isHarmful } from '../endpoints/plan-endpoints.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';

/** The part of the input of a pass that decides the slices. */
export interface SlicesWorld {
  readonly spec: ClusterSpec;
  readonly nowMs: number;
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** The slices of the Service, and the slices with our names. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state of the slices besides the first after the last pass. */
  readonly slicesContest: ContestState;
}

/** What a pass does to the slices besides the one that mirrors the Endpoints. */
export interface SlicesPlan {
  readonly writes: readonly SliceWrite[];
  /** The slice of the second family as it was read. */
  readonly current?: EndpointSliceObject;
  /** The addresses of the second family. */
  readonly live: readonly string[];
  readonly wanted: string;
  /** Absent: there is no second family, and nothing is pruned. */
  readonly verdict?: ContestVerdict;
  readonly findings: readonly Finding[];
}

/** The API servers of one family. */
export interface FamilyServers extends NoLiveAddress {
  /** The addresses to publish: none without an active lease. */
  readonly live: readonly string[];
  /** The addresses with a lease that must not be published. */
  readonly excluded: readonly string[];
}

export function serversOf(
  { spec, nowMs, outcomes }: SlicesWorld,
  known: { readonly leases: readonly Lease[]; readonly expected: readonly ExpectedAddress[] },
  family: IPFamily,
): FamilyServers {
  const isOf = (address: string) => familyOf(address) === family;
  const leases = known.leases.filter(({ address }) => isOf(address));
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, known.expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  const ends = leases.map((lease) => [lease.address, withdrawnUntil(lease, nowMs)] as const);
  const withdrawn = ends.flatMap(([address, ms]) =>
    ms === undefined ? [] : [[address, new Date(ms).toISOString()] as const],
  );
  return { cluster: spec.name, live, excluded, outcomes: outcomesOf(outcomes, isOf), withdrawn: new Map(withdrawn) };
}

/**
 * Decides the slices besides the one that mirrors the Endpoints. Without a live address the slice of the second family stays
 * unchanged, as the Endpoints do: only a spec that no longer asks for both families deletes it.
 */
export function decideSlices(world: SlicesWorld, servers: readonly FamilyServers[]): SlicesPlan {
  const { spec, slices, nowMs } = world;
  const second = secondOf(world, servers[1]);
  const { current, live, write } = second;
  const foreign = slices.filter((slice) => foreignSlice(slice).length > 0);
  const pruned = foreign.filter((slice) => isPruned(slice, spec, servers));
  const wanted = JSON.stringify([live, endpointPorts(spec)]);
  const verdict = judgeContest(world.slicesContest, {
    wanted,
    differs: write !== undefined || pruned.length > 0,
    versions: versionsOf(current, ...pruned),
    urgent: write !== undefined && isHarmful(sliceAddresses(current), servers[1]?.excluded ?? []),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  const writes = [...(write === undefined ? [] : [write]), ...pruned.map(deletion)];
  const kept = verdict.withhold ? foreign : foreign.filter((slice) => !pruned.includes(slice));
  const owners = verdict.twoOwners ? [twoOwners([current, ...pruned], FIELD_MANAGER, verdict)] : [];
  const isDecided = spec.endpoints.prune === true || servers.length > 1;
  return {
    writes: [...(verdict.withhold ? [] : writes), ...second.unwanted.map(deletion)],
    ...(current && { current }),
    live,
    wanted,
    // A foreign slice is always the change of another writer.
    ...(isDecided && { verdict: { ...verdict, corrects: verdict.corrects || pruned.length > 0 } }),
    findings: [
      ...kept.flatMap((slice) => foreignSlice(slice, spec.endpoints.prune)),
      ...second.findings,
      ...(isDecided ? owners : []),
    ],
  };
}

/** Returns the slice of the second family and its write, and the slices of ours that the spec no longer asks for. */
function secondOf({ spec, slices }: SlicesWorld, servers: FamilyServers | undefined) {
  const family = secondFamily(spec);
  const name = family && sliceRef(family).name;
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && slice.metadata.name !== name);
  if (family === undefined || servers === undefined) return { unwanted, live: [], findings: [] };
  const { live } = servers;
  const current = slices.find((slice) => slice.metadata.name === name);
  if (live.length === 0) return { unwanted, current, live, findings: [noLiveLease(servers, family)] };
  return { unwanted, current, live, write: sliceWrite(secondSlice(spec, family, live), current), findings: [] };
}

function deletion(object: EndpointSliceObject): SliceWrite {
  return { verb: 'delete', object };
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

export function versionsOf(...objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}
