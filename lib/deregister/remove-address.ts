import { type WriteFailure, type WrittenObjects, writeObjects } from '../api-servers/write-objects.ts';
import {
  addressesIn,
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  type PublishedFamily,
  type PublishedObjects,
  publishedFamilies,
  SERVICE_NAME_LABEL,
} from '../cluster/published-objects.ts';
import { planWrites } from '../endpoints/publication.ts';
import { knownAddresses, publishedAddresses } from '../endpoints/published-servers.ts';
import { ClusterError, type ClusterPort, resultOrFault } from '../kubernetes/cluster-port.ts';
import { isWithdrawn, type Lease } from '../leases/lease.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { readLeases } from '../table/leases.ts';
import { describeError, type ErrorDescription } from '../telemetry/telemetry.ts';

export interface RemovalRequest {
  readonly spec: ClusterSpec;
  readonly table: KeyValueTable;
  readonly connect: () => Promise<ClusterPort>;
  readonly address: string;
  readonly nowMs: () => number;
  /** True to remove the address even if it is the last live address of its family. */
  readonly lastOne?: boolean | undefined;
}

interface Removal extends RemovalRequest {
  readonly kubernetes: ClusterPort;
  readonly family: PublishedFamily;
}

export interface AddressRemoval {
  /** True if the Endpoints or a slice may still contain the address. The next pass of kubernetes-service removes it. */
  readonly stillPublished: boolean;
  readonly changes: readonly string[];
  readonly error?: ErrorDescription;
}

/** The maximum number of attempts. If other writers change the endpoints during all of them, the next pass removes the address. */
const ATTEMPTS = 4;

/** Removes a withdrawn address from the endpoints. @param mayBeAdded true if a pass may be about to publish the address */
export async function removeAddress(request: RemovalRequest, mayBeAdded: boolean): Promise<AddressRemoval> {
  const changes: string[] = [];
  try {
    const kubernetes = await request.connect();
    const removal = { ...request, family: familyOf(request), kubernetes };
    if (mayBeAdded) changes.push(...(await fence(removal)));
    let error: WriteFailure | undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const written = await writeWithout(removal);
      changes.push(...written.changes);
      error = written.failure;
      if (error?.code !== 'Conflict' && error?.code !== 'AlreadyExists') break;
    }
    const stillPublished = await isPublished(removal, mayBeAdded);
    return { stillPublished, changes, ...(error && { error: describeError(error) }) };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { stillPublished: true, changes, error: describeError(error) };
  }
}

/** Returns the addresses of the same family that stay published after the removal of the address in `request`. */
export function othersLive(request: RemovalRequest, leases: readonly Lease[]): string[] {
  const live = publishedAddresses(leases, knownAddresses(request.spec, leases), request.nowMs());
  const { isOf } = familyOf(request);
  return live.filter((other) => other !== request.address && isOf(other));
}

function familyOf({ spec, address }: RemovalRequest): PublishedFamily {
  const families = publishedFamilies(spec);
  return families.find(({ isOf }) => isOf(address)) ?? families[0];
}

async function writeWithout(removal: Removal): Promise<Pick<WrittenObjects, 'changes' | 'failure'>> {
  const { kubernetes, table, spec, nowMs, address, lastOne = false } = removal;
  const { family, refs } = removal.family;
  const [slice, endpoints] = await Promise.all([
    resultOrFault(kubernetes.get<EndpointSliceObject>(refs.EndpointSlice)),
    refs.Endpoints && resultOrFault(kubernetes.get<EndpointsObject>(refs.Endpoints)),
  ]);
  const objects: PublishedObjects = {
    ...(refs.Endpoints && !(endpoints instanceof ClusterError) && { Endpoints: endpoints }),
    ...(!(slice instanceof ClusterError) && { EndpointSlice: slice }),
  };
  const published = Object.values(objects).flatMap(addressesIn);
  if (!published.includes(address)) return { changes: [] };
  const { leases } = await readLeases(table, spec.name);
  const others = othersLive(removal, leases);
  // Other addresses without an active lease stay, because only a pass probes and removes them.
  const withdrawn = new Set(leases.filter((lease) => isWithdrawn(lease, nowMs())).map((lease) => lease.address));
  const staying = published.filter((ip) => !withdrawn.has(ip));
  const live = others.length === 0 ? [] : [...new Set([...others, ...staying])].sort();
  if (live.length === 0 && !lastOne) return { changes: [] };
  // Upstream's lease reconciler also corrects the ports when it removes an address.
  const reconcilePorts = spec.endpoints.reconciler !== 'master-count' || spec.endpoints.reconcilePorts;
  const removing = { ...spec, endpoints: { ...spec.endpoints, reconcilePorts } };
  return writeObjects(kubernetes, planWrites({ spec: removing, family, objects, live, excluded: [address] }));
}

const FENCED_AT = 'kube-bootstrap-controller/fenced-at';

/** Annotates each object that lacks the address. The API server then refuses the write of a pass that read the object earlier. */
async function fence({ kubernetes, nowMs, address, family }: Removal): Promise<string[]> {
  const changes: string[] = [];
  for (const ref of Object.values(family.refs)) {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const object = await resultOrFault(kubernetes.get<EndpointsObject | EndpointSliceObject>(ref));
      if (object === undefined || object instanceof ClusterError || addressesIn(object).includes(address)) break;
      const annotations = { ...object.metadata.annotations, [FENCED_AT]: new Date(nowMs()).toISOString() };
      const result = await kubernetes.update({ ...object, metadata: { ...object.metadata, annotations } });
      if (result.outcome === 'updated') changes.push(`fenced ${ref.kind.toLowerCase()} default/${ref.name}`);
      if (result.outcome !== 'conflict') break;
    }
  }
  return changes;
}

/** Returns true if an object publishes the address; with `mayBeAdded`, also if a pass may be about to create such an object. */
async function isPublished({ kubernetes, address, family }: Removal, mayBeAdded: boolean): Promise<boolean> {
  const { refs } = family;
  const selector = `${SERVICE_NAME_LABEL}=${KUBERNETES_SERVICE.name}`;
  const [endpoints, slices] = await Promise.all([
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    kubernetes.list<EndpointSliceObject>('EndpointSlice', KUBERNETES_SERVICE.namespace, selector),
  ]);
  const hasSlice = slices.some(({ metadata }) => metadata.name === refs.EndpointSlice.name);
  const areThere = hasSlice && (refs.Endpoints === undefined || endpoints !== undefined);
  if (mayBeAdded && !areThere) return true;
  return [endpoints, ...slices].some((object) => addressesIn(object).includes(address));
}
