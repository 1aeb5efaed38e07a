import { failureOf, type WriteFailure, writeObjects } from '../api-servers/write-objects.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { afterWrite, type ContestState } from '../endpoints/contested-writes.ts';
import { EndpointsError } from '../endpoints/endpoint-findings.ts';
import type { ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  KUBERNETES_SERVICE,
  SERVICE_CIDR_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { type Publication, versionsOf } from '../endpoints/publication.ts';
import { ClusterError, type ClusterPort, type CreateResult } from '../kubernetes/cluster-port.ts';
import { plainValue } from '../table/stored-item.ts';
import type { EndpointsPlan, World } from './endpoints-decide.ts';
import type { PassContext, PassReport } from './pass.ts';

/** What the pass wrote so far. */
interface Made {
  readonly changes: string[];
  readonly wouldWrite: string[];
  readonly errors: Error[];
}

/** Writes the Service, the Endpoints and the slices; then reports. */
export async function apply(context: PassContext, world: World, plan: EndpointsPlan): Promise<PassReport> {
  const made: Made = { changes: [...world.lines], wouldWrite: [], errors: [] };
  if (!(await ensureService(context, plan.service, made))) return reported(made, { findings: world.findings });
  const { endpoints, slices, findings, counts } = plan;
  const errorsBefore = made.errors.length;
  made.errors.push(...plan.errors);
  const contest = await publish(context, world, endpoints, made);
  // Another writer's slice may be the only one that has addresses.
  const isDeleting = made.errors.length === errorsBefore;
  const writes = slices.writes.filter(({ verb }) => isDeleting || verb !== 'delete');
  const slicesContest = await publish(context, world, { ...slices, writes }, made);
  const state = plainValue({ ...contest, ...(slicesContest && { slices: slicesContest }) });
  return reported(made, { findings, counts, state });
}

/** Writes the Service alone, for an API server that publishes its own endpoints. */
export async function applyService(context: PassContext, write: ServiceWrite | undefined): Promise<PassReport> {
  const made: Made = { changes: [], wouldWrite: [], errors: [] };
  await ensureService(context, write, made);
  return reported(made, {});
}

function reported({ wouldWrite, ...made }: Made, found: Partial<PassReport>): PassReport {
  return { findings: [], counts: {}, ...found, ...made, ...(wouldWrite.length > 0 && { wouldWrite }) };
}

/** Makes the writes, and returns the state for the next pass. */
async function publish(
  { kubernetes }: PassContext,
  { nowMs }: World,
  { writes, objects, removals, verdict }: Publication,
  made: Made,
): Promise<ContestState | undefined> {
  const { changes, objects: written, isWithheld, failure } = await writeObjects(kubernetes, writes);
  made.changes.push(...changes);
  if (isWithheld) made.wouldWrite.push(...removals.map((line) => `remove ${line}`));
  else if (changes.length > 0) made.changes.push(...removals.map((line) => `removed ${line}`));
  if (failure !== undefined) made.errors.push(endpointsError(failure));
  // Another writer can only undo a write that was made.
  if (writes.length === 0 || isWithheld || failure !== undefined) return verdict?.state;
  return verdict && afterWrite(verdict, { versions: versionsOf(Object.values({ ...objects, ...written })), nowMs });
}

function endpointsError({ code, message }: WriteFailure, cause?: Error): EndpointsError {
  return new EndpointsError(code, message, cause && { cause });
}

type ServiceContext = Pick<PassContext, 'kubernetes' | 'spec' | 'pause'>;

/**
 * How long the Service waits for the ServiceCIDR of its own pass, at most: the API server allocates from it as soon as
 * its informer has seen it (`pkg/registry/core/service/ipallocator/cidrallocator.go`).
 */
const ALLOCATOR_PAUSES_MS = [50, 100, 200, 400, 800];
const SERVICE = `${KUBERNETES_SERVICE.namespace}/${KUBERNETES_SERVICE.name}`;

/**
 * Creates or updates the Service `default/kubernetes`. Also creates what an API server needs before it accepts the Service:
 * the namespace `default`, and the ServiceCIDR `kubernetes` (Kubernetes 1.33 and later, with the server's own hooks off).
 * @returns whether there is a Service to publish endpoints for
 */
async function ensureService(context: ServiceContext, write: ServiceWrite | undefined, made: Made): Promise<boolean> {
  if (write === undefined) return true;
  if (write.verb === 'create') return createService(context, write.object, made);
  const result = await context.kubernetes.update(write.object);
  if (result.outcome === 'updated') made.changes.push(`updated service ${SERVICE}: ${write.fields}`);
  if (!('object' in result)) made.errors.push(endpointsError(failureOf(result, `Service ${SERVICE}`)));
  return true;
}

async function createService(context: ServiceContext, desired: ServiceObject, made: Made): Promise<boolean> {
  const { kubernetes, spec } = context;
  let cause: ClusterError | undefined;
  let result = await kubernetes.create(desired);
  if (result.outcome === 'namespaceUnavailable' && (await createNamespace(kubernetes))) {
    made.changes.push('created namespace default');
    result = await kubernetes.create(desired);
  }
  if (result.outcome === 'invalid') {
    const serviceCidr = await createServiceCidr(kubernetes, spec);
    if (serviceCidr === 'created') {
      made.changes.push(`created servicecidr kubernetes: ${spec.serviceClusterIPRanges.join(' ')}`);
      result = await createOnceAllocatable(context, desired);
    } else cause = serviceCidr;
  }
  if (result.outcome === 'alreadyExists' || result.outcome === 'withheld') return true;
  if (result.outcome === 'created') {
    made.changes.push(`created service ${SERVICE}: ${result.object.spec.clusterIP ?? ''}`);
    return true;
  }
  made.errors.push(endpointsError(failureOf(result, `Service ${SERVICE}`), cause));
  return false;
}

/** Creates the Service as soon as the API server can allocate; if that takes too long, the next pass tries again. */
async function createOnceAllocatable(
  { kubernetes, pause }: ServiceContext,
  desired: ServiceObject,
): Promise<CreateResult<ServiceObject>> {
  let result = await kubernetes.create(desired);
  for (const ms of ALLOCATOR_PAUSES_MS) {
    if (result.outcome !== 'invalid') break;
    await pause(ms);
    result = await kubernetes.create(desired);
  }
  return result;
}

async function createNamespace(kubernetes: ClusterPort): Promise<boolean> {
  const namespace: KubernetesObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } };
  return (await kubernetes.create(namespace)).outcome === 'created';
}

/** The ServiceCIDR is missing, and this API server does not serve the kind or denies access to it. */
async function createServiceCidr(
  kubernetes: ClusterPort,
  spec: ClusterSpec,
): Promise<'created' | ClusterError | undefined> {
  const serviceCidr: ServiceCidrObject = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: SERVICE_CIDR_REF.name },
    spec: { cidrs: spec.serviceClusterIPRanges },
  };
  try {
    if ((await kubernetes.get(SERVICE_CIDR_REF)) !== undefined) return undefined;
    const result = await kubernetes.create(serviceCidr);
    return result.outcome === 'created' ? 'created' : undefined;
  } catch (error) {
    if (error instanceof ClusterError && (error.code === 'Rejected' || error.code === 'Forbidden')) return error;
    throw error;
  }
}
