import type { EndpointAddress, EndpointsObject } from './objects.ts';
import { addMaster, type EndpointsDecision, type MasterCountObservation, onlySubset } from './reconcilers.ts';
import { addressKey } from './repack-subsets.ts';

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

export function changedBy(decision: EndpointsDecision): EndpointsObject | undefined {
  return 'endpoints' in decision ? decision.endpoints : undefined;
}
