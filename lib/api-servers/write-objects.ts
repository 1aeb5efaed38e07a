import type { Finding } from '../cluster/finding.ts';
import {
  addressesIn,
  defaultServiceCidr,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  type PublishedObjects,
  SERVICE_CIDR_REF,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { versionsOf } from '../endpoints/contested-writes.ts';
import { EndpointsError, type EndpointsErrorCode } from '../endpoints/endpoint-findings.ts';
import type { ServiceWrite } from '../endpoints/kubernetes-service.ts';
import type { PlannedWrite, Publication } from '../endpoints/publication.ts';
import { sliceFromEndpoints, sliceWrites } from '../endpoints/slices.ts';
import {
  ClusterError,
  type ClusterPort,
  type CreateResult,
  describeRef,
  isFaultOfObject,
  refOf,
  type UpdateResult,
} from '../kubernetes/cluster-port.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { defined } from '../util/values.ts';

export type WriteFailure = EndpointsError | ClusterError;

/** Makes the writes of a publication. Returns the lines for the report and the state for the next pass. */
export async function publish(kubernetes: ClusterPort, publication: Publication) {
  const { writes, objects, removals, added, verdict } = publication;
  const { changes, objects: written, isWithheld, failure } = await writeObjects(kubernetes, writes);
  const isWritten = changes.length > 0 && !isWithheld;
  // The contest state records our write only if it is complete, because another writer cannot undo what was not written.
  const isUnwritten = writes.length === 0 || isWithheld || failure !== undefined;
  const versions = versionsOf(Object.values({ ...objects, ...written }));
  return {
    changes: [...changes, ...(isWritten ? removals.map((line) => `removed ${line}`) : [])],
    moves: isWritten ? { removals, added } : { removals: [], added: [] },
    wouldWrite: isWithheld ? removals.map((line) => `remove ${line}`) : [],
    errors: failure === undefined ? [] : [failure],
    state: isUnwritten ? verdict?.state : verdict?.afterWrite(versions),
  };
}

export interface WrittenObjects {
  readonly changes: readonly string[];
  /** The written objects, as the API server stored them. If the pass only reports its writes, the objects that it would write. */
  readonly objects: PublishedObjects;
  readonly isWithheld: boolean;
  readonly failure?: WriteFailure;
}

/** Makes the writes in order. Stops after a failed write, except a delete, so that no slice is written without its Endpoints. */
export async function writeObjects(kubernetes: ClusterPort, plan: readonly PlannedWrite[]): Promise<WrittenObjects> {
  const changes: string[] = [];
  let objects: PublishedObjects = {};
  let isWithheld = false;
  let failure: WriteFailure | undefined;
  for (const planned of plan) {
    for (const write of planned.verb === 'mirror' ? mirrorWrites(planned, objects) : [planned]) {
      const written = await writeObject(kubernetes, write).catch(failedWrite);
      changes.push(...written.changes);
      objects = { ...objects, ...written.objects };
      isWithheld ||= written.isWithheld;
      failure ??= written.failure;
      if (written.failure && write.verb !== 'delete') return { changes, objects, isWithheld, failure: written.failure };
    }
  }
  return { changes, objects, isWithheld, ...defined({ failure }) };
}

/** If the failure concerns only the written object, returns a result that contains the failure. Throws any other failure. */
function failedWrite(failure: unknown): WrittenObjects {
  if (!isFaultOfObject(failure)) throw failure;
  return { changes: [], objects: {}, isWithheld: false, failure };
}

type ObjectWrite = Exclude<PlannedWrite, { readonly verb: 'mirror' }>;

function mirrorWrites(
  { object: slice, prune }: Exclude<PlannedWrite, ObjectWrite>,
  { Endpoints: endpoints }: PublishedObjects,
): readonly ObjectWrite[] {
  return endpoints === undefined ? [] : sliceWrites(sliceFromEndpoints(endpoints), slice, prune);
}

type Published = EndpointsObject | EndpointSliceObject;

async function writeObject(kubernetes: ClusterPort, { verb, object }: ObjectWrite): Promise<WrittenObjects> {
  const { kind, namespace, name } = refOf(object);
  const nothing = { changes: [], objects: {}, isWithheld: false };
  const failed = (refusal: Refusal) => ({ ...nothing, failure: failureOf(refusal, describeRef(refOf(object))) });
  if (verb === 'delete' || verb === 'replace') {
    const outcome = await kubernetes.delete(object);
    if (outcome === 'conflict') return failed({ outcome });
    const type = verb === 'replace' ? ` of address type ${object.addressType}` : '';
    const changes = outcome === 'deleted' ? [`deleted endpointslice ${namespace}/${name}${type}`] : [];
    return { ...nothing, changes, isWithheld: outcome === 'withheld' };
  }
  const result: CreateResult<Published> | UpdateResult<Published> =
    verb === 'create' ? await kubernetes.create(object) : await kubernetes.update(object);
  // Another writer created the slice after this pass had found it missing. The next pass reads it.
  if (result.outcome === 'alreadyExists' && kind === 'EndpointSlice') return nothing;
  if (!('object' in result)) return failed(result);
  const isWithheld = result.outcome === 'withheld';
  const addresses = addressesIn(result.object).join(' ') || 'no address';
  const change = `${verb}d ${kind.toLowerCase()} ${namespace}/${name}: ${addresses}`;
  return { changes: isWithheld ? [] : [change], objects: { [kind]: result.object }, isWithheld };
}

type Refusal = Exclude<CreateResult<unknown> | UpdateResult<unknown>, { readonly object: unknown }>;

/** @param what a text that names the object in messages, such as `Service default/kubernetes` */
function failureOf(refusal: Refusal, what: string, cause?: ClusterError): EndpointsError {
  const since = 'by another writer after this pass read it; the next pass reads it again';
  const failed = (code: EndpointsErrorCode, why: string) =>
    new EndpointsError(code, `${what} ${why}`, cause && { cause });
  switch (refusal.outcome) {
    case 'conflict':
    case 'notFound':
      return failed('Conflict', `was changed or deleted ${since}`);
    case 'alreadyExists':
      return failed('AlreadyExists', `was created ${since}`);
    case 'invalid':
      return failed('Invalid', `is refused by the API server: ${refusal.message}`);
    case 'namespaceUnavailable':
      return failed(
        'NamespaceUnavailable',
        `has no namespace: ${refusal.message}. The system-namespaces loop creates it`,
      );
  }
}

/** The waits before further attempts to create the Service, until the API server's allocator has seen a new ServiceCIDR. */
const ALLOCATOR_PAUSES_MS = [50, 100, 200, 400, 800];
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: KUBERNETES_SERVICE.namespace } };
const SERVICE = `${KUBERNETES_SERVICE.namespace}/${KUBERNETES_SERVICE.name}`;

export interface ServicePass {
  readonly kubernetes: ClusterPort;
  readonly spec: ClusterSpec;
  /** Waits for this time, but at most until the deadline of the pass. */
  readonly pause: (ms: number) => Promise<void>;
}

export interface WrittenService {
  readonly changes: readonly string[];
  readonly errors: readonly WriteFailure[];
  readonly findings?: readonly Finding[];
  /** True if the Service is missing and was not created. The pass then publishes no endpoints. */
  readonly isMissing: boolean;
}

/** Creates or updates the Service. If the API server refuses to create it, also creates its missing namespace or ServiceCIDR. */
export async function writeService(pass: ServicePass, write: ServiceWrite | undefined): Promise<WrittenService> {
  if (write === undefined) return { changes: [], errors: [], isMissing: false };
  try {
    return await (write.verb === 'create' ? createService(pass, write.object) : updateService(pass, write));
  } catch (error) {
    const isCreate = write.verb === 'create';
    if (!(error instanceof ClusterError) || (isCreate && !isFaultOfObject(error))) throw error;
    return { changes: [], errors: [error], isMissing: isCreate };
  }
}

async function updateService(
  pass: ServicePass,
  write: Extract<ServiceWrite, { readonly verb: 'update' }>,
): Promise<WrittenService> {
  const result = await pass.kubernetes.update(write.object);
  if (result.outcome === 'invalid' && write.needsTwoRanges) {
    const remedy = 'Start the API servers with both ranges (--service-cluster-ip-range)';
    const message = `Service ${SERVICE} has one family, and the API server refuses the other: ${result.message}. ${remedy}`;
    return { changes: [], errors: [], findings: [{ type: 'serviceDiffers', message }], isMissing: false };
  }
  return {
    changes: result.outcome === 'updated' ? [`updated service ${SERVICE}: ${write.fields}`] : [],
    errors: 'object' in result ? [] : [failureOf(result, `Service ${SERVICE}`)],
    isMissing: false,
  };
}

async function createService(pass: ServicePass, desired: ServiceObject): Promise<WrittenService> {
  const { kubernetes, spec } = pass;
  const changes: string[] = [];
  let cause: ClusterError | undefined;
  let result = await kubernetes.create(desired);
  if (result.outcome === 'namespaceUnavailable' && (await kubernetes.create(NAMESPACE)).outcome === 'created') {
    changes.push('created namespace default');
    result = await kubernetes.create(desired);
  }
  if (result.outcome === 'invalid') {
    const serviceCidr = await createServiceCidr(kubernetes, spec);
    if (serviceCidr === 'created') {
      changes.push(`created servicecidr kubernetes: ${spec.serviceClusterIPRanges.join(' ')}`);
      result = await createOnceAllocatable(pass, desired);
    } else cause = serviceCidr;
  }
  if (result.outcome === 'created') changes.push(`created service ${SERVICE}: ${result.object.spec.clusterIP ?? ''}`);
  if ('object' in result || result.outcome === 'alreadyExists') return { changes, errors: [], isMissing: false };
  return { changes, errors: [failureOf(result, `Service ${SERVICE}`, cause)], isMissing: true };
}

/** Tries to create the Service until the API server can allocate an address. If all attempts fail, the next pass tries again. */
async function createOnceAllocatable({ kubernetes, pause }: ServicePass, desired: ServiceObject) {
  let result = await kubernetes.create(desired);
  for (const ms of ALLOCATOR_PAUSES_MS) {
    if (result.outcome !== 'invalid') break;
    await pause(ms);
    result = await kubernetes.create(desired);
  }
  return result;
}

/** Creates a missing ServiceCIDR. Returns an error if the API server does not serve the kind or denies access. */
async function createServiceCidr(kubernetes: ClusterPort, spec: ClusterSpec) {
  try {
    if ((await kubernetes.get(SERVICE_CIDR_REF)) !== undefined) return undefined;
    const { outcome } = await kubernetes.create(defaultServiceCidr(spec));
    return outcome === 'created' ? outcome : undefined;
  } catch (error) {
    if (error instanceof ClusterError && (error.code === 'Rejected' || error.code === 'Forbidden')) return error;
    throw error;
  }
}
