import { writtenObject } from '../api-servers/write-endpoints.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { EndpointsError } from '../endpoints/endpoint-findings.ts';
import type { ServiceWrite } from '../endpoints/kubernetes-service.ts';
import {
  KUBERNETES_SERVICE,
  SERVICE_CIDR_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../endpoints/objects.ts';
import { ClusterError, type ClusterPort, type CreateResult } from '../kubernetes/cluster-port.ts';
import type { PassContext } from './pass.ts';

export interface ServiceEnsured {
  readonly changes: readonly string[];
  /** Whether there is a Service to publish endpoints for. */
  readonly exists: boolean;
  readonly error?: Error;
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
 */
export async function ensureService(context: ServiceContext, write: ServiceWrite | undefined): Promise<ServiceEnsured> {
  if (write === undefined) return { changes: [], exists: true };
  if (write.verb === 'create') return createService(context, write.object);
  const result = await context.kubernetes.update(write.object);
  const written = writtenObject(result, `Service ${SERVICE}`);
  if (written instanceof EndpointsError) return { changes: [], exists: true, error: written };
  return { changes: result.outcome === 'updated' ? [`updated service ${SERVICE}: ${write.fields}`] : [], exists: true };
}

async function createService(context: ServiceContext, desired: ServiceObject): Promise<ServiceEnsured> {
  const { kubernetes, spec } = context;
  const changes: string[] = [];
  let result = await kubernetes.create(desired);
  if (result.outcome === 'namespaceUnavailable' && (await createNamespace(kubernetes))) {
    changes.push('created namespace default');
    result = await kubernetes.create(desired);
  }
  if (result.outcome !== 'invalid') return serviceCreated(result, changes);

  const serviceCidr = await createServiceCidr(kubernetes, spec);
  if (serviceCidr !== 'created') return serviceCreated(result, changes, serviceCidr);
  changes.push(`created servicecidr kubernetes: ${spec.serviceClusterIPRanges.join(' ')}`);
  return serviceCreated(await createOnceAllocatable(context, desired), changes);
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

function serviceCreated(
  result: CreateResult<ServiceObject>,
  changes: readonly string[],
  cause?: ClusterError,
): ServiceEnsured {
  if (result.outcome === 'alreadyExists' || result.outcome === 'withheld') return { changes, exists: true };
  const written = writtenObject(result, `Service ${SERVICE}`, cause);
  if (written instanceof EndpointsError) return { changes, exists: false, error: written };
  return { changes: [...changes, `created service ${SERVICE}: ${written.spec.clusterIP ?? ''}`], exists: true };
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
