import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { EndpointsError, type EndpointsErrorCode } from '../endpoints/endpoint-findings.ts';
import { ensureSlice, type SliceWrite, sliceAddresses } from '../endpoints/endpoint-slice.ts';
import {
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  readyAddresses,
} from '../endpoints/objects.ts';
import type { EndpointsDecision } from '../endpoints/reconcilers.ts';
import type { ClusterPort, CreateResult, UpdateResult } from '../kubernetes/cluster-port.ts';

/** What was written, in order, and the objects as they are now. */
export interface EndpointsWritten {
  readonly changes: readonly string[];
  readonly endpoints?: EndpointsObject;
  readonly slice?: EndpointSliceObject;
  /** Why it ended early; what is before it in `changes` was written. */
  readonly error?: EndpointsError;
}

/**
 * Endpoints first, then the EndpointSlice that mirrors what the API server answered; when the Endpoints cannot be
 * written the slice is not touched (`pkg/controlplane/reconcilers/endpointsadapter.go`). `readSlice` is asked only
 * when the slice is looked at.
 */
export async function writeEndpoints(
  kubernetes: ClusterPort,
  decision: Exclude<EndpointsDecision, { outcome: 'nothing' | 'refused' }>,
  readSlice: () => Promise<EndpointSliceObject | undefined>,
): Promise<EndpointsWritten> {
  if (decision.outcome === 'keep') return writeSlice(kubernetes, decision.endpoints, readSlice, []);
  const { outcome, endpoints } = decision;
  const object = { ...endpoints, apiVersion: 'v1', kind: 'Endpoints' };
  const result = outcome === 'create' ? await kubernetes.create(object) : await kubernetes.update(object);
  const written = writtenObject(result, 'Endpoints');
  if (written instanceof EndpointsError) return { changes: [], error: written };
  return writeSlice(kubernetes, written, readSlice, [`${outcome}d endpoints ${described(readyAddresses(written))}`]);
}

async function writeSlice(
  kubernetes: ClusterPort,
  endpoints: EndpointsObject,
  readSlice: () => Promise<EndpointSliceObject | undefined>,
  before: readonly string[],
): Promise<EndpointsWritten> {
  const current = await readSlice();
  const write = ensureSlice(endpoints, current);
  if (write === undefined) return { changes: before, endpoints, ...(current && { slice: current }) };
  const { changes, slice, error } = await applySliceWrite(kubernetes, write);
  return { changes: [...before, ...changes], endpoints, ...(slice && { slice }), ...(error && { error }) };
}

async function applySliceWrite(
  kubernetes: ClusterPort,
  write: SliceWrite,
): Promise<Pick<EndpointsWritten, 'changes' | 'slice' | 'error'>> {
  const deleted = write.verb === 'replace' ? await kubernetes.delete(write.object) : 'notFound';
  if (deleted === 'conflict') return { changes: [], error: conflict('EndpointSlice') };
  const gone = deleted === 'deleted' ? [`deleted endpointslice ${write.object.addressType}`] : [];

  const object = write.verb === 'replace' ? write.replacement : write.object;
  const result = write.verb === 'update' ? await kubernetes.update(object) : await kubernetes.create(object);
  // Somebody made it since it was read: the next pass looks at what it is.
  if (result.outcome === 'alreadyExists') return { changes: gone };
  const slice = writtenObject(result, 'EndpointSlice');
  if (slice instanceof EndpointsError) return { changes: gone, error: slice };
  const done = write.verb === 'update' ? 'updated' : 'created';
  return { changes: [...gone, `${done} endpointslice ${described(sliceAddresses(slice))}`], slice };
}

/** The object as the API server has it now, or why it was not written. */
export function writtenObject<T extends KubernetesObject>(
  result: CreateResult<T> | UpdateResult<T>,
  kind: string,
  cause?: Error,
): T | EndpointsError {
  const failed = (code: EndpointsErrorCode, message: string) =>
    new EndpointsError(code, `${kind} default/kubernetes ${message}`, cause && { cause });
  switch (result.outcome) {
    case 'created':
    case 'updated':
      return result.object;
    case 'conflict':
    case 'notFound':
      return conflict(kind);
    case 'alreadyExists':
      return failed('AlreadyExists', 'was made by somebody else after this pass read; the next pass reads anew');
    case 'invalid':
      return failed('Invalid', `is refused by the API server: ${result.message}`);
    case 'namespaceUnavailable':
      return failed('NamespaceUnavailable', `has no namespace: ${result.message}. The system-namespaces loop makes it`);
  }
}

function conflict(kind: string): EndpointsError {
  const what = `${kind} default/kubernetes was changed or deleted by somebody else after this pass read it`;
  return new EndpointsError('Conflict', `${what}; the next pass reads anew`);
}

function described(addresses: readonly string[]): string {
  const { namespace, name } = KUBERNETES_SERVICE;
  return `${namespace}/${name}: ${addresses.length === 0 ? 'no address' : addresses.join(' ')}`;
}
