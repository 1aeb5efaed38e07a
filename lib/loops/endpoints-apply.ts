import { applySliceWrite, writeEndpoints, writtenObject } from '../api-servers/write-endpoints.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { afterWrite, type ContestState } from '../endpoints/contested-writes.ts';
import type { ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  KUBERNETES_SERVICE,
  SERVICE_CIDR_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { ClusterError, type ClusterPort, type CreateResult } from '../kubernetes/cluster-port.ts';
import { plainValue } from '../table/item-values.ts';
import { type EndpointsPlan, type Publication, versionsOf, type World } from './endpoints-decide.ts';
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
  const { publication, slices, findings, counts } = plan;
  const errorsBefore = made.errors.length;
  made.errors.push(...plan.errors);
  const contest = publication === undefined ? plan.contest : await publish(context, world, publication, made);
  // Another writer's slice may be the only one that has addresses.
  const isDeleting = made.errors.length === errorsBefore;
  const writes = slices.writes.filter(({ verb }) => isDeleting || verb !== 'delete');
  const slicesContest = await publishSlices(context, world, { ...slices, writes }, made);
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

/** Writes the Endpoints and the slice that mirrors them. Returns the state for the next pass. */
async function publish(
  context: PassContext,
  { nowMs }: World,
  { endpoints, slice, verdict, wanted, removals }: Publication,
  made: Made,
): Promise<ContestState> {
  const written = await writeEndpoints(context.kubernetes, endpoints, slice, context.spec.endpoints.prune);
  made.changes.push(...written.changes);
  const removed = written.endpoints === undefined ? [] : removals;
  if (written.withheld) made.wouldWrite.push(...removed.map((line) => `remove ${line}`));
  else made.changes.push(...removed.map((line) => `removed ${line}`));
  if (written.error !== undefined) made.errors.push(written.error);
  // Another writer can only undo a write that was made.
  if (written.withheld || written.error !== undefined) return verdict.state;
  return afterWrite(verdict, { wanted, versions: versionsOf(written.endpoints, written.slice), nowMs });
}

/** Writes the other slices one after the other. An error ends the writes; the next pass tries again. */
async function publishSlices(
  context: PassContext,
  { nowMs }: World,
  { writes, current, wanted, verdict, removals }: EndpointsPlan['slices'],
  made: Made,
): Promise<ContestState | undefined> {
  let versions = versionsOf(current);
  let isWithheld = false;
  for (const write of writes) {
    const { slice, withheld = false, error, changes } = await applySliceWrite(context.kubernetes, write);
    made.changes.push(...changes);
    isWithheld ||= withheld;
    if (error !== undefined) {
      made.errors.push(error);
      return verdict?.state;
    }
    if (slice !== undefined && !withheld) versions = versionsOf(slice);
  }
  if (isWithheld) made.wouldWrite.push(...removals.map((line) => `remove ${line}`));
  if (isWithheld || writes.length === 0) return verdict?.state;
  made.changes.push(...removals.map((line) => `removed ${line}`));
  return verdict && afterWrite(verdict, { wanted, versions, nowMs });
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
  const written = writtenObject(await context.kubernetes.update(write.object), `Service ${SERVICE}`);
  if (written.outcome === 'failed') made.errors.push(written.error);
  if (written.outcome === 'written') made.changes.push(`updated service ${SERVICE}: ${write.fields}`);
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
  if (result.outcome === 'alreadyExists') return true;
  const written = writtenObject(result, `Service ${SERVICE}`, cause);
  if (written.outcome === 'failed') made.errors.push(written.error);
  if (written.outcome === 'written') {
    made.changes.push(`created service ${SERVICE}: ${written.object.spec.clusterIP ?? ''}`);
  }
  return written.outcome !== 'failed';
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
