import type { EndpointsErrorCode } from '../endpoints/endpoint-findings.ts';
import {
  addressesIn,
  type EndpointSliceObject,
  type EndpointsObject,
  type PublishedObjects,
} from '../endpoints/objects.ts';
import type { PlannedWrite } from '../endpoints/publication.ts';
import { sliceFromEndpoints, sliceWrites } from '../endpoints/slices.ts';
import {
  type ClusterPort,
  type CreateResult,
  describeRef,
  refOf,
  type UpdateResult,
} from '../kubernetes/cluster-port.ts';

/** Why an object was not written; the next pass tries again. */
export interface WriteFailure {
  readonly code: EndpointsErrorCode;
  readonly message: string;
}

export interface WrittenObjects {
  /** One line for each write that was made. */
  readonly changes: readonly string[];
  /** The written objects as the API server has them now, or as they would be. */
  readonly objects: PublishedObjects;
  /** The port withheld the writes. */
  readonly isWithheld: boolean;
  /** The reason why the writes ended early. */
  readonly failure?: WriteFailure;
}

/**
 * Makes the writes one after the other, until one fails: if the Endpoints cannot be written, their slice is not written either
 * (`pkg/controlplane/reconcilers/endpointsadapter.go`).
 */
export async function writeObjects(kubernetes: ClusterPort, plan: readonly PlannedWrite[]): Promise<WrittenObjects> {
  const changes: string[] = [];
  let objects: PublishedObjects = {};
  let isWithheld = false;
  for (const planned of plan) {
    for (const write of planned.verb === 'mirror' ? mirrorWrites(planned, objects) : [planned]) {
      const written = await writeObject(kubernetes, write);
      if (written.outcome === 'failed') return { changes, objects, isWithheld, failure: written.failure };
      changes.push(...written.changes);
      objects = { ...objects, ...written.object };
      isWithheld ||= written.isWithheld;
    }
  }
  return { changes, objects, isWithheld };
}

type ObjectWrite = Exclude<PlannedWrite, { readonly verb: 'mirror' }>;

function mirrorWrites(
  { object: slice, prune }: Exclude<PlannedWrite, ObjectWrite>,
  { Endpoints: endpoints }: PublishedObjects,
): readonly ObjectWrite[] {
  return endpoints === undefined ? [] : sliceWrites(sliceFromEndpoints(endpoints), slice, prune);
}

type Published = EndpointsObject | EndpointSliceObject;

type Written =
  | { readonly outcome: 'failed'; readonly failure: WriteFailure }
  | {
      readonly outcome: 'written';
      readonly changes: readonly string[];
      readonly object?: PublishedObjects;
      readonly isWithheld: boolean;
    };

async function writeObject(kubernetes: ClusterPort, { verb, object }: ObjectWrite): Promise<Written> {
  const { kind, namespace, name } = refOf(object);
  if (verb === 'delete' || verb === 'replace') {
    const outcome = await kubernetes.delete(object);
    if (outcome === 'conflict')
      return { outcome: 'failed', failure: failureOf({ outcome }, describeRef(refOf(object))) };
    const what = verb === 'replace' ? object.addressType : `${namespace}/${name}`;
    const changes = outcome === 'deleted' ? [`deleted endpointslice ${what}`] : [];
    return { outcome: 'written', changes, isWithheld: outcome === 'withheld' };
  }
  const result: CreateResult<Published> | UpdateResult<Published> =
    verb === 'create' ? await kubernetes.create(object) : await kubernetes.update(object);
  // Another writer created the slice after it was read: the next pass reads it.
  const isLeft = result.outcome === 'alreadyExists' && kind === 'EndpointSlice';
  if (isLeft) return { outcome: 'written', changes: [], isWithheld: false };
  if (!('object' in result)) return { outcome: 'failed', failure: failureOf(result, describeRef(refOf(object))) };
  const isWithheld = result.outcome === 'withheld';
  const addresses = addressesIn(result.object).join(' ') || 'no address';
  const change = `${verb}d ${kind.toLowerCase()} ${namespace}/${name}: ${addresses}`;
  return { outcome: 'written', changes: isWithheld ? [] : [change], object: { [kind]: result.object }, isWithheld };
}

type Refusal = Exclude<CreateResult<unknown> | UpdateResult<unknown>, { readonly object: unknown }>;

/** @param what the object in the message: `Service default/kubernetes` */
export function failureOf(refusal: Refusal, what: string): WriteFailure {
  switch (refusal.outcome) {
    case 'conflict':
    case 'notFound': {
      const why = 'was changed or deleted by another writer after this pass read it';
      return { code: 'Conflict', message: `${what} ${why}; the next pass reads it again` };
    }
    case 'alreadyExists': {
      const why = 'was created by another writer after this pass read it';
      return { code: 'AlreadyExists', message: `${what} ${why}; the next pass reads it again` };
    }
    case 'invalid':
      return { code: 'Invalid', message: `${what} is refused by the API server: ${refusal.message}` };
    case 'namespaceUnavailable': {
      const why = `has no namespace: ${refusal.message}`;
      return { code: 'NamespaceUnavailable', message: `${what} ${why}. The system-namespaces loop creates it` };
    }
  }
}
