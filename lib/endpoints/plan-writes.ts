import type { IPFamily } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { endpointPorts } from './kubernetes-service.ts';
import {
  addressesIn,
  type EndpointAddress,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  type PublishedObjects,
  portText,
  sameJson,
} from './objects.ts';
import { addMaster, leaseEndpoints, type MasterRules, onlySubset, removeMasters } from './reconcilers.ts';
import { addressKey } from './repack-subsets.ts';
import { type SliceWrite, secondSlice, sliceFromEndpoints, sliceWrites } from './slices.ts';

export interface FamilyObservation {
  readonly spec: ClusterSpec;
  readonly family: IPFamily;
  /** As they were read. */
  readonly objects: PublishedObjects;
  /** Addresses to publish, in byte order. */
  readonly live: readonly string[];
  /** Addresses with a lease that must not be published. */
  readonly excluded: readonly string[];
}

/** `mirror` makes the slice `object` the mirror of the Endpoints that the write before it left. */
export type PlannedWrite =
  | SliceWrite
  | { readonly verb: 'create' | 'update'; readonly object: EndpointsObject }
  | { readonly verb: 'mirror'; readonly object: EndpointSliceObject | undefined; readonly prune: boolean };

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

/** With more servers than the master count, servers displace each other: the result is stable from the second sequence on. */
const MOST_SEQUENCES = 3;

/**
 * Applies the master-count reconciler of each server in order ({@link addMaster}), until a whole sequence changes nothing.
 * Once the subset is repacked, a server takes its place in the order of the addresses without repacking it again.
 */
export function addMasters(
  current: EndpointsObject | undefined,
  live: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  let endpoints = current;
  for (let sequence = 0; sequence < MOST_SEQUENCES; sequence++) {
    const before = endpoints;
    endpoints = addInOrder(endpoints, live, rules);
    if (endpoints === before) break;
  }
  return endpoints;
}

function addInOrder(
  current: EndpointsObject | undefined,
  live: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  let endpoints = current;
  let present = new Set<string>();
  let isRepacked = false;
  for (const [index, address] of live.entries()) {
    if (present.has(address)) continue;
    if (isRepacked) return endpoints && withRest(endpoints, live.slice(index), rules.masterCount);
    const before = (endpoints && onlySubset(endpoints))?.addresses ?? [];
    isRepacked = before.length > rules.masterCount || before.every(({ ip }) => ip !== address);
    endpoints = addMaster(endpoints, address, rules);
    present = new Set(endpoints && onlySubset(endpoints)?.addresses?.map(({ ip }) => ip));
  }
  return endpoints;
}

/** Adds the remaining servers as {@link addMaster} does, to a subset that is repacked and has the right ports. */
function withRest(endpoints: EndpointsObject, live: readonly string[], masterCount: number): EndpointsObject {
  const [only, ...others] = endpoints.subsets ?? [];
  const addresses = [...(only?.addresses ?? [])];
  const present = new Set(addresses.map(({ ip }) => ip));
  for (const ip of live) {
    if (present.has(ip)) continue;
    const at = placeOf({ ip }, addresses);
    addresses.splice(at, 0, { ip });
    present.add(ip);
    if (addresses.length <= masterCount) continue;
    // One address too many: the address after the added one is removed; the first, if the added one is last.
    const next = (at + 1) % addresses.length;
    const [removed] = addresses.splice(next, 1);
    const isLeft = [addresses[next - 1], addresses[next]].some((other) => other?.ip === removed?.ip);
    if (removed !== undefined && !isLeft) present.delete(removed.ip);
  }
  return { ...endpoints, subsets: [{ ...only, addresses }, ...others] };
}

/** Returns the index at which the address is inserted to keep the order of repacked addresses. */
function placeOf(address: EndpointAddress, addresses: readonly EndpointAddress[]): number {
  const key = addressKey(address);
  let [from, to] = [0, addresses.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = addresses[middle];
    if (other !== undefined && addressKey(other) < key) from = middle + 1;
    else to = middle;
  }
  return from;
}
