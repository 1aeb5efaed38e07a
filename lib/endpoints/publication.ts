import type { IPFamily } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { type Lease, withdrawnUntil } from '../cluster/lease.ts';
import { isoTime } from '../cluster/values.ts';
import { type ContestState, type ContestVerdict, judgeContest } from './contested-writes.ts';
import { type ServersOfAFamily, twoOwners } from './endpoint-findings.ts';
import { endpointPorts } from './kubernetes-service.ts';
import {
  addressesIn,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  type PublishedObjects,
  portText,
  sameJson,
} from './objects.ts';
import { addMasters, leaseEndpoints, onlySubset, removeMasters } from './reconcilers.ts';
import { type SliceWrite, secondSlice, sliceFromEndpoints, sliceWrites } from './slices.ts';

export interface FamilyObservation {
  readonly spec: ClusterSpec;
  readonly family: IPFamily;
  /** The objects as they were read. */
  readonly objects: PublishedObjects;
  /** Addresses to publish, in byte order. */
  readonly live: readonly string[];
  /** Addresses with a lease that must not be published. */
  readonly excluded: readonly string[];
}

/** `mirror` makes the slice `object` mirror the Endpoints as the write before it left them. */
export type PlannedWrite =
  | SliceWrite
  | { readonly verb: 'create' | 'update'; readonly object: EndpointsObject }
  | { readonly verb: 'mirror'; readonly object: EndpointSliceObject | undefined; readonly prune: boolean };

/** The API servers of one family, with the reasons why they are published or not. */
export type FamilyServers = FamilyObservation & ServersOfAFamily;

/**
 * The writes of the Endpoints and their slice, or of all other slices. Each of the two groups has one contest with
 * another writer.
 */
export interface Publication {
  readonly writes: readonly PlannedWrite[];
  /** The objects of the family as they were read. */
  readonly objects: PublishedObjects;
  /** Each address that the writes remove, with the reason. */
  readonly removals: readonly string[];
  /** Absent: there is no second family, and nothing is pruned. */
  readonly verdict: ContestVerdict | undefined;
  readonly findings: readonly Finding[];
}

/** Decides whether the difference of the found objects is the change of another writer, and what to write. */
export function publicationOf(
  servers: FamilyServers,
  before: ContestState,
  pruned: readonly EndpointSliceObject[] = [],
): Publication {
  const { spec, nowMs, live, objects } = servers;
  const planned = live.length === 0 ? [] : planWrites(servers);
  const found = [...Object.values(objects), ...pruned];
  const judged = judgeContest(before, {
    wanted: JSON.stringify([live, endpointPorts(spec)]),
    differs: planned.length + pruned.length > 0,
    versions: versionsOf(found),
    urgent: planned.length > 0 && isHarmful(servers),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  // A foreign slice is always the change of another writer.
  const verdict = { ...judged, corrects: judged.corrects || pruned.length > 0 };
  const writes = verdict.withhold ? [] : [...planned, ...pruned.map(deletion)];
  const findings = verdict.twoOwners ? [twoOwners(found, verdict)] : [];
  return { writes, objects, removals: removalsOf(servers, writes), verdict, findings };
}

export function deletion(object: EndpointSliceObject) {
  return { verb: 'delete', object } as const;
}

export function versionsOf(objects: readonly (KubernetesObject | undefined)[]): string[] {
  return objects.map((object) => object?.metadata.resourceVersion ?? '');
}

/** Returns the writes after which the objects of a family publish the live addresses, in their order. */
export function planWrites(observation: FamilyObservation): readonly PlannedWrite[] {
  const { spec, family, objects, live } = observation;
  const { Endpoints: current, EndpointSlice: slice } = objects;
  if (!('Endpoints' in objects)) return sliceWrites(secondSlice(spec, family, live), slice);
  const { prune = false } = spec.endpoints;
  const endpoints = plannedEndpoints(observation);
  if (endpoints === undefined) return [];
  if (endpoints === current) return sliceWrites(sliceFromEndpoints(current), slice, prune);
  return [
    { verb: current === undefined ? 'create' : 'update', object: endpoints },
    { verb: 'mirror', object: slice, prune },
  ];
}

/** Whether the objects publish what clients must not see: no address, or an excluded one. Such a correction never waits. */
export function isHarmful({ objects, excluded }: Pick<FamilyObservation, 'objects' | 'excluded'>): boolean {
  const isExcluded = new Set(excluded);
  return Object.values(objects)
    .map(addressesIn)
    .some((addresses) => addresses.length === 0 || addresses.some((address) => isExcluded.has(address)));
}

/** Returns the same object if it is correct; undefined: missing Endpoints are not created without an address. */
function plannedEndpoints({ spec, objects, live, excluded }: FamilyObservation): EndpointsObject | undefined {
  const { Endpoints: current } = objects;
  const { reconciler, reconcilePorts, masterCount, prune } = spec.endpoints;
  if (current === undefined && live.length === 0) return undefined;
  const rules = { masterCount, reconcilePorts, ports: inFoundOrder(endpointPorts(spec), current) };
  const base = withReadyOnly(current, live, prune);
  if (reconciler !== 'master-count') return leaseEndpoints(base, live, rules);
  const isExcluded = new Set(excluded);
  const isAnyExcluded = addressesIn(current).some((ip) => isExcluded.has(ip));
  const without = isAnyExcluded ? (removeMasters(base, isExcluded) ?? base) : base;
  const endpoints = addMasters(without, live, rules);
  return sameJson(endpoints, current) ? current : endpoints;
}

/** Keeps the current order of ports, because some API servers sort them. */
function inFoundOrder(wanted: readonly EndpointPort[], current: EndpointsObject | undefined): readonly EndpointPort[] {
  const found = (current && onlySubset(current)?.ports) ?? [];
  const isFound = new Set(found.map(portText));
  return found.length === wanted.length && wanted.every((port) => isFound.has(portText(port))) ? found : wanted;
}

/**
 * Removes live addresses from those that another writer marked as not ready: repacking would keep them not ready forever.
 * @param prune removes all that are not ready
 */
function withReadyOnly(
  current: EndpointsObject | undefined,
  live: readonly string[],
  prune = false,
): EndpointsObject | undefined {
  const isLive = new Set(live);
  const calledNotReady = (current?.subsets ?? []).some(({ notReadyAddresses = [] }) =>
    notReadyAddresses.some(({ ip }) => prune || isLive.has(ip)),
  );
  if (current === undefined || !calledNotReady) return current;
  const subsets = (current.subsets ?? []).map((subset) => ({
    ...subset,
    notReadyAddresses: (subset.notReadyAddresses ?? []).filter(({ ip }) => !prune && !isLive.has(ip)),
  }));
  return { ...current, subsets };
}

/** Returns one line for each address that is removed from the endpoints: `10.0.0.2 from the endpoints: its lease expired; ...`. */
function removalsOf({ outcomes, nowMs, leases, objects }: FamilyServers, writes: readonly PlannedWrite[]): string[] {
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
  if (untilMs !== undefined) return `it is deregistered until ${isoTime(untilMs)}`;
  const expired = `its lease expired at ${isoTime(lease.expiresAtMs)}`;
  const cause = lease.source === 'agent' && detail === undefined ? 'its agent does not refresh it' : detail;
  return cause === undefined ? expired : `${expired}; ${cause}`;
}
