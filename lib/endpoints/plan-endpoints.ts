import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { ensureSlice, sliceAddresses } from './endpoint-slice.ts';
import { endpointPorts } from './kubernetes-service.ts';
import {
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  readyAddresses,
  sameJson,
  samePort,
} from './objects.ts';
import { addMaster, type EndpointsDecision, leaseEndpoints, onlySubset, removeMaster } from './reconcilers.ts';

export interface EndpointsObservation {
  readonly spec: ClusterSpec;
  readonly current: EndpointsObject | undefined;
  readonly slice: EndpointSliceObject | undefined;
  /** Addresses to publish, in byte order. */
  readonly live: readonly string[];
  /** Addresses whose lease is known, and which must not be published. */
  readonly excluded: readonly string[];
}

/** Decides what a tick does to the Endpoints, for all addresses at once. */
export function planEndpoints(observation: EndpointsObservation): EndpointsDecision {
  const { spec, current, live } = observation;
  if (live.length === 0) return { outcome: 'refused' };
  const ports = inFoundOrder(endpointPorts(spec), current);
  const { reconcilePorts } = spec.endpoints;
  const base = withReadyOnly(current, live);
  if (spec.endpoints.reconciler === 'master-count') return planMasters(observation, base, ports);
  const decision = leaseEndpoints({ current: base, live, ports, reconcilePorts, stopped: false });
  return decision.outcome === 'keep' && base !== current ? { ...decision, outcome: 'update' } : decision;
}

/** Whether the plan includes a write, of Endpoints or of the slice. */
export function plansWrite(decision: EndpointsDecision, slice: EndpointSliceObject | undefined): boolean {
  switch (decision.outcome) {
    case 'nothing':
    case 'refused':
      return false;
    case 'keep':
      return ensureSlice(decision.endpoints, slice) !== undefined;
    case 'create':
    case 'update':
      return true;
  }
}

/** Whether no address is published, or one whose lease has ended: a write that corrects this is never withheld. */
export function isUrgent({ current, slice, excluded }: EndpointsObservation): boolean {
  const published = [readyAddresses(current), sliceAddresses(slice)];
  return published.some(
    (addresses) => addresses.length === 0 || addresses.some((address) => excluded.includes(address)),
  );
}

/**
 * Applies the master-count reconciler of each server in order, until a whole sequence changes nothing. More servers than are
 * counted displace each other in every sequence: the result of the last one counts.
 */
function planMasters(
  { spec, current, live, excluded }: EndpointsObservation,
  base: EndpointsObject | undefined,
  ports: readonly EndpointPort[],
): EndpointsDecision {
  const { masterCount, reconcilePorts } = spec.endpoints;
  let endpoints = base;
  for (const address of readyAddresses(current).filter((ip) => excluded.includes(ip))) {
    endpoints = changedBy(removeMaster(endpoints, address)) ?? endpoints;
  }
  for (let sequence = 0; sequence <= live.length; sequence++) {
    const before = endpoints;
    for (const address of live) {
      endpoints =
        changedBy(addMaster({ current: endpoints, address, masterCount, ports, reconcilePorts })) ?? endpoints;
    }
    if (endpoints === before) break;
  }
  if (endpoints === undefined) return { outcome: 'nothing' };
  if (current !== undefined && sameJson(endpoints, current)) return { outcome: 'keep', endpoints: current };
  return { outcome: current === undefined ? 'create' : 'update', endpoints };
}

function changedBy(decision: EndpointsDecision): EndpointsObject | undefined {
  return 'endpoints' in decision ? decision.endpoints : undefined;
}

/** Some API servers sort ports: the order that is there is as good as ours. */
function inFoundOrder(wanted: readonly EndpointPort[], current: EndpointsObject | undefined): readonly EndpointPort[] {
  const found = (current && onlySubset(current)?.ports) ?? [];
  const same = found.length === wanted.length && wanted.every((port) => found.some((other) => samePort(port, other)));
  return same ? found : wanted;
}

/** A live address that another writer marked as not ready would stay so for ever: repacking lets not ready win. */
function withReadyOnly(current: EndpointsObject | undefined, live: readonly string[]): EndpointsObject | undefined {
  const calledNotReady = (current?.subsets ?? []).some(({ notReadyAddresses = [] }) =>
    notReadyAddresses.some(({ ip }) => live.includes(ip)),
  );
  if (current === undefined || !calledNotReady) return current;
  const subsets = (current.subsets ?? []).map((subset) => ({
    ...subset,
    notReadyAddresses: (subset.notReadyAddresses ?? []).filter(({ ip }) => !live.includes(ip)),
  }));
  return { ...current, subsets };
}
