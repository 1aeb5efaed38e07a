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

/** The writes in order, and the objects after them. */
export interface EndpointsWritten {
  readonly changes: readonly string[];
  readonly endpoints?: EndpointsObject;
  readonly slice?: EndpointSliceObject;
  /** The port withheld the writes: the objects are those that would have been written. */
  readonly withheld?: true;
  /** The reason why the writes ended early; the writes in `changes` were made. */
  readonly error?: EndpointsError;
}

/**
 * Writes the Endpoints first, then the EndpointSlice that mirrors the API server's answer; if the Endpoints cannot be
 * written the slice is not touched (`pkg/controlplane/reconcilers/endpointsadapter.go`).
 * @param slice as it was read
 */
export async function writeEndpoints(
  kubernetes: ClusterPort,
  decision: Exclude<EndpointsDecision, { outcome: 'nothing' | 'refused' }>,
  slice: EndpointSliceObject | undefined,
  prune?: boolean,
): Promise<EndpointsWritten> {
  if (decision.outcome === 'keep') return writeSlice(kubernetes, decision.endpoints, slice, prune);
  const { outcome, endpoints } = decision;
  const object = { ...endpoints, apiVersion: 'v1', kind: 'Endpoints' };
  const result = outcome === 'create' ? await kubernetes.create(object) : await kubernetes.update(object);
  const written = writtenObject(result, `Endpoints ${named(object)}`);
  if (written.outcome === 'failed') return { changes: [], error: written.error };
  const change = `${outcome}d endpoints ${described(readyAddresses(written.object), written.object)}`;
  const rest = await writeSlice(kubernetes, written.object, slice, prune);
  if (written.outcome === 'withheld') return { ...rest, withheld: true };
  return { ...rest, changes: [change, ...rest.changes] };
}

async function writeSlice(
  kubernetes: ClusterPort,
  endpoints: EndpointsObject,
  current: EndpointSliceObject | undefined,
  prune: boolean | undefined,
): Promise<EndpointsWritten> {
  const write = ensureSlice(endpoints, current, prune);
  if (write === undefined) return { changes: [], endpoints, ...(current && { slice: current }) };
  return { ...(await applySliceWrite(kubernetes, write)), endpoints };
}

export async function applySliceWrite(
  kubernetes: ClusterPort,
  write: SliceWrite,
): Promise<Omit<EndpointsWritten, 'endpoints'>> {
  const isDeleted = write.verb === 'replace' || write.verb === 'delete';
  const deleted = isDeleted ? await kubernetes.delete(write.object) : 'notFound';
  if (deleted === 'conflict') return { changes: [], error: conflict(`EndpointSlice ${named(write.object)}`) };
  const what = write.verb === 'replace' ? write.object.addressType : named(write.object);
  const before = deleted === 'deleted' ? [`deleted endpointslice ${what}`] : [];
  if (write.verb === 'delete') return { changes: before, ...(deleted === 'withheld' && { withheld: true }) };

  const object = write.verb === 'replace' ? write.replacement : write.object;
  const result = write.verb === 'update' ? await kubernetes.update(object) : await kubernetes.create(object);
  // Another writer created the slice after it was read: the next pass reads it.
  if (result.outcome === 'alreadyExists') return { changes: before };
  const written = writtenObject(result, `EndpointSlice ${named(object)}`);
  if (written.outcome === 'failed') return { changes: before, error: written.error };
  const { object: slice } = written;
  if (written.outcome === 'withheld') return { changes: before, slice, withheld: true };
  const done = write.verb === 'update' ? 'updated' : 'created';
  return { changes: [...before, `${done} endpointslice ${described(sliceAddresses(slice), slice)}`], slice };
}

type Written<T> =
  /** `object`: as the API server has it now, or as it would be. */
  | { readonly outcome: 'written' | 'withheld'; readonly object: T }
  | { readonly outcome: 'failed'; readonly error: EndpointsError };

/** @param what the object in the message: `Service default/kubernetes` */
export function writtenObject<T extends KubernetesObject>(
  result: CreateResult<T> | UpdateResult<T>,
  what: string,
  cause?: Error,
): Written<T> {
  const failed = (code: EndpointsErrorCode, message: string): Written<T> => {
    return { outcome: 'failed', error: new EndpointsError(code, `${what} ${message}`, cause && { cause }) };
  };
  switch (result.outcome) {
    case 'created':
    case 'updated':
      return { outcome: 'written', object: result.object };
    case 'withheld':
      return result;
    case 'conflict':
    case 'notFound':
      return { outcome: 'failed', error: conflict(what) };
    case 'alreadyExists':
      return failed(
        'AlreadyExists',
        'was created by another writer after this pass read it; the next pass reads it again',
      );
    case 'invalid':
      return failed('Invalid', `is refused by the API server: ${result.message}`);
    case 'namespaceUnavailable':
      return failed(
        'NamespaceUnavailable',
        `has no namespace: ${result.message}. The system-namespaces loop creates it`,
      );
  }
}

function conflict(what: string): EndpointsError {
  const why = 'was changed or deleted by another writer after this pass read it';
  return new EndpointsError('Conflict', `${what} ${why}; the next pass reads it again`);
}

function described(addresses: readonly string[], object: KubernetesObject): string {
  return `${named(object)}: ${addresses.length === 0 ? 'no address' : addresses.join(' ')}`;
}

function named({ metadata }: KubernetesObject): string {
  return `${KUBERNETES_SERVICE.namespace}/${metadata.name}`;
}
