import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { ensureSlice, sliceAddresses } from './endpoint-slice.ts';
import { endpointPorts } from './kubernetes-service.ts';
import {
  type EndpointAddress,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  portText,
  readyAddresses,
  sameJson,
} from './objects.ts';
import {
  addMaster,
  type EndpointsDecision,
  leaseEndpoints,
  type MasterCountObservation,
  onlySubset,
  removeMasters,
} from './reconcilers.ts';
import { addressKey } from './repack-subsets.ts';

export interface EndpointsObservation {
  readonly spec: ClusterSpec;
  readonly current: EndpointsObject | undefined;
  readonly slice: EndpointSliceObject | undefined;
  /** Addresses to publish, in byte order. */
  readonly live: readonly string[];
  /** Addresses with a lease that must not be published. */
  readonly excluded: readonly string[];
}

/** Decides what a tick does to the Endpoints, for all addresses at once. */
export function planEndpoints(observation: EndpointsObservation): EndpointsDecision {
  const { spec, current, live } = observation;
  if (live.length === 0) return { outcome: 'refused' };
  const ports = inFoundOrder(endpointPorts(spec), current);
  const { reconcilePorts } = spec.endpoints;
  const base = withReadyOnly(current, live, spec.endpoints.prune);
  if (spec.endpoints.reconciler === 'master-count') return planMasters(observation, base, ports);
  const decision = leaseEndpoints({ current: base, live, ports, reconcilePorts, stopped: false });
  return decision.outcome === 'keep' && base !== current ? { ...decision, outcome: 'update' } : decision;
}

/** Whether the plan includes a write, of Endpoints or of the slice. */
export function plansWrite(
  decision: EndpointsDecision,
  slice: EndpointSliceObject | undefined,
  prune?: boolean,
): boolean {
  const isKept = decision.outcome === 'keep';
  return isKept ? ensureSlice(decision.endpoints, slice, prune) !== undefined : 'endpoints' in decision;
}

/** Whether a write corrects what clients must not see: such a write is never withheld. */
export function isUrgent({ current, slice, excluded }: EndpointsObservation): boolean {
  return [readyAddresses(current), sliceAddresses(slice)].some((published) => isHarmful(published, excluded));
}

/** Whether no address is published, or one whose lease has ended. */
export function isHarmful(published: readonly string[], excluded: readonly string[]): boolean {
  const isExcluded = new Set(excluded);
  return published.length === 0 || published.some((address) => isExcluded.has(address));
}

/** Removes the excluded addresses, and then adds the servers as their master-count reconcilers do. */
function planMasters(
  { spec, current, live, excluded }: EndpointsObservation,
  base: EndpointsObject | undefined,
  ports: readonly EndpointPort[],
): EndpointsDecision {
  const { masterCount, reconcilePorts } = spec.endpoints;
  const isExcluded = new Set(excluded);
  const isAnyExcluded = readyAddresses(current).some((ip) => isExcluded.has(ip));
  const without = isAnyExcluded ? (changedBy(removeMasters(base, isExcluded)) ?? base) : base;
  const endpoints = addMasters(without, live, { masterCount, ports, reconcilePorts });
  if (endpoints === undefined) return { outcome: 'nothing' };
  if (current !== undefined && sameJson(endpoints, current)) return { outcome: 'keep', endpoints: current };
  return { outcome: current === undefined ? 'create' : 'update', endpoints };
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
  how: Pick<MasterCountObservation, 'masterCount' | 'ports' | 'reconcilePorts'>,
): EndpointsObject | undefined {
  let endpoints = current;
  for (let sequence = 0; sequence < MOST_SEQUENCES; sequence++) {
    const before = endpoints;
    endpoints = addInOrder(endpoints, live, how);
    if (endpoints === before) break;
  }
  return endpoints;
}

function addInOrder(
  current: EndpointsObject | undefined,
  live: readonly string[],
  how: Pick<MasterCountObservation, 'masterCount' | 'ports' | 'reconcilePorts'>,
): EndpointsObject | undefined {
  let endpoints = current;
  let present = new Set<string>();
  let isRepacked = false;
  for (const [index, address] of live.entries()) {
    if (present.has(address)) continue;
    if (isRepacked) return endpoints && withRest(endpoints, live.slice(index), how.masterCount);
    const before = (endpoints && onlySubset(endpoints))?.addresses ?? [];
    isRepacked = before.length > how.masterCount || before.every(({ ip }) => ip !== address);
    endpoints = changedBy(addMaster({ current: endpoints, address, ...how })) ?? endpoints;
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

function changedBy(decision: EndpointsDecision): EndpointsObject | undefined {
  return 'endpoints' in decision ? decision.endpoints : undefined;
}
