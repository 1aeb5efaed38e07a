import { familyOf } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { isWithdrawn, type Lease } from '../cluster/lease.ts';
import { familyTests, secondFamily, secondSlice, sliceRef } from '../endpoints/dual-stack.ts';
import type { EndpointsError } from '../endpoints/endpoint-findings.ts';
import { sliceAddresses, sliceWrite } from '../endpoints/endpoint-slice.ts';
import { endpointPorts } from '../endpoints/kubernetes-service.ts';
import { knownAddresses, publishedAddresses } from '../endpoints/lease-decisions.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  readyAddresses,
  SERVICE_NAME_LABEL,
  SLICE_REF,
} from '../endpoints/objects.ts';
import { type EndpointsObservation, planEndpoints } from '../endpoints/plan-endpoints.ts';
import { type EndpointsDecision, leaseEndpoints, removeMasters } from '../endpoints/reconcilers.ts';
import { ClusterError, type ClusterPort, RESOURCES } from '../kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { readLeases } from '../table/leases.ts';
import { applySliceWrite, writeEndpoints } from './write-endpoints.ts';

export interface RemovalRequest {
  readonly spec: ClusterSpec;
  /** Calls of table and cluster end with the caller's deadline. */
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
  readonly nowMs: () => number;
  /** Remove it even if no other address is left. */
  readonly lastOne?: boolean;
}

export interface AddressRemoval {
  /** Whether Endpoints or a slice still have the address: the kubernetes-service loop removes it at its next tick. */
  readonly stillPublished: boolean;
  readonly changes: readonly string[];
  /** The reason why the address was not removed at once. */
  readonly error?: EndpointsError | ClusterError;
}

/** Endpoints that other writers keep changing are left to the next tick. */
const ATTEMPTS = 4;

/**
 * Removes an address that was withdrawn before from Endpoints and EndpointSlice.
 * @param mayBeAdded the address had a valid lease lately: a tick that read this lease may be about to add an unpublished address
 */
export async function removeAddress(
  request: RemovalRequest,
  address: string,
  mayBeAdded: boolean,
): Promise<AddressRemoval> {
  const changes: string[] = [];
  try {
    if (mayBeAdded) changes.push(...(await fence(request, address)));
    let error: EndpointsError | undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const written = await writeWithout(request, address);
      changes.push(...written.changes);
      error = written.error;
      if (error?.code !== 'Conflict' && error?.code !== 'AlreadyExists') break;
    }
    const stillPublished = await isPublished(request, address, mayBeAdded);
    return { stillPublished, changes, ...(error && { error }) };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { stillPublished: true, changes, error };
  }
}

/** Returns the addresses, of the same family if both are published, that stay published without this one. */
export function othersLive({ spec, nowMs }: RemovalRequest, leases: readonly Lease[], address: string): string[] {
  const live = publishedAddresses(leases, knownAddresses(spec.apiServers, leases), nowMs());
  const isOf = familyTests(spec).find((test) => test(address));
  return live.filter((other) => other !== address && isOf?.(other));
}

/** Returns the slice that alone publishes the address, if it is of the second family. */
function secondRef(spec: ClusterSpec, address: string) {
  const family = secondFamily(spec);
  return family !== undefined && familyOf(address) === family ? { family, ref: sliceRef(family) } : undefined;
}

async function writeWithout(
  request: RemovalRequest,
  address: string,
): Promise<{ readonly changes: readonly string[]; readonly error?: EndpointsError }> {
  const { kubernetes, table, spec, lastOne = false } = request;
  const second = secondRef(spec, address);
  const [current, slice] = await Promise.all([
    second === undefined ? kubernetes.get<EndpointsObject>(ENDPOINTS_REF) : undefined,
    kubernetes.get<EndpointSliceObject>(second?.ref ?? SLICE_REF),
  ]);
  if (![...readyAddresses(current), ...sliceAddresses(slice)].includes(address)) return { changes: [] };
  const { leases } = await readLeases(table, spec.name);
  const others = othersLive(request, leases, address);
  // Only a tick, which probes them, removes other addresses without a valid lease. They are no reason to remove the last live one.
  const withdrawn = new Set(
    leases.filter((lease) => isWithdrawn(lease, request.nowMs())).map((lease) => lease.address),
  );
  const published = second === undefined ? readyAddresses(current) : sliceAddresses(slice);
  const staying = published.filter((ip) => !withdrawn.has(ip));
  const live = others.length === 0 ? [] : [...new Set([...others, ...staying])].sort();
  if (second !== undefined) {
    const write = live.length > 0 || lastOne ? sliceWrite(secondSlice(spec, second.family, live), slice) : undefined;
    return write === undefined ? { changes: [] } : applySliceWrite(kubernetes, write);
  }
  const decision = decisionWithout(request, address, { current, slice, live });
  if (decision.outcome === 'nothing' || decision.outcome === 'refused') return { changes: [] };
  return writeEndpoints(kubernetes, decision, slice, spec.endpoints.prune);
}

const FENCED_AT = 'kube-bootstrap-controller/fenced-at';

/**
 * Raises the version of each object that does not have the address, by an annotation, so that a write of a tick that read it
 * before is refused. Writing it unchanged would not: the API server stores nothing then.
 */
async function fence({ kubernetes, nowMs, spec }: RemovalRequest, address: string): Promise<string[]> {
  const changes: string[] = [];
  const second = secondRef(spec, address);
  for (const ref of second === undefined ? [ENDPOINTS_REF, SLICE_REF] : [second.ref]) {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const object = await kubernetes.get<EndpointsObject & EndpointSliceObject>(ref);
      if (object === undefined || [...readyAddresses(object), ...sliceAddresses(object)].includes(address)) break;
      const annotations = { ...object.metadata.annotations, [FENCED_AT]: new Date(nowMs()).toISOString() };
      const result = await kubernetes.update({
        ...object,
        apiVersion: RESOURCES[ref.kind].apiVersion,
        kind: ref.kind,
        metadata: { ...object.metadata, annotations },
      });
      if (result.outcome === 'updated') changes.push(`fenced ${ref.kind.toLowerCase()} default/${ref.name}`);
      if (result.outcome !== 'conflict') break;
    }
  }
  return changes;
}

/** Plans the removal as a tick would if other addresses are live, so that these are published in any case. */
function decisionWithout(
  { spec, lastOne = false }: RemovalRequest,
  address: string,
  { current, slice, live }: Pick<EndpointsObservation, 'current' | 'slice' | 'live'>,
): EndpointsDecision {
  const leases = spec.endpoints.reconciler !== 'master-count';
  if (live.length > 0) {
    const endpoints = { ...spec.endpoints, reconcilePorts: leases || spec.endpoints.reconcilePorts };
    return planEndpoints({ spec: { ...spec, endpoints }, current, slice, live, excluded: [address] });
  }
  if (!lastOne) return { outcome: 'refused' };
  if (leases) return leaseEndpoints({ current, live, ports: endpointPorts(spec), reconcilePorts: true, stopped: true });
  const absent = current !== undefined && !readyAddresses(current).includes(address);
  return absent ? { outcome: 'keep', endpoints: current } : removeMasters(current, new Set([address]));
}

/** An absent object has no version that would refuse a write: a tick may be about to create it with the address. */
async function isPublished(
  { kubernetes, spec }: RemovalRequest,
  address: string,
  mayBeAdded: boolean,
): Promise<boolean> {
  const selector = `${SERVICE_NAME_LABEL}=${KUBERNETES_SERVICE.name}`;
  const [endpoints, slices] = await Promise.all([
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    kubernetes.list<EndpointSliceObject>('EndpointSlice', KUBERNETES_SERVICE.namespace, selector),
  ]);
  const second = secondRef(spec, address);
  const isThere =
    second === undefined ? endpoints !== undefined : slices.some(({ metadata }) => metadata.name === second.ref.name);
  if (mayBeAdded && !isThere) return true;
  return readyAddresses(endpoints).includes(address) || slices.some((slice) => sliceAddresses(slice).includes(address));
}
