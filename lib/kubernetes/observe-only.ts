import type { Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import {
  type ClusterPort,
  type CreateResult,
  type DeleteResult,
  describeRef,
  type Kind,
  type ObjectRef,
  refOf,
  type UpdateResult,
} from './cluster-port.ts';

/**
 * Reads like `port`, and writes nothing: each write is told (`create Namespace kube-system`) and answered as if it had
 * been made.
 */
export function observeOnly(port: ClusterPort, wouldWrite: (description: string) => void): ClusterPort {
  return new ObservingCluster(port, wouldWrite);
}

class ObservingCluster implements ClusterPort {
  readonly #port: ClusterPort;
  readonly #wouldWrite: (description: string) => void;

  constructor(port: ClusterPort, wouldWrite: (description: string) => void) {
    this.#port = port;
    this.#wouldWrite = wouldWrite;
  }

  async get<T extends KubernetesObject>(ref: ObjectRef): Promise<T | undefined> {
    return this.#port.get<T>(ref);
  }

  async list<T extends KubernetesObject>(kind: Kind, namespace?: string, labelSelector?: string): Promise<T[]> {
    return this.#port.list<T>(kind, namespace, labelSelector);
  }

  services(): AsyncIterable<ServiceClaim> {
    return this.#port.services();
  }

  async create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>> {
    this.#wouldWrite(`create ${describeRef(refOf(object))}`);
    return { outcome: 'created', object };
  }

  async update<T extends KubernetesObject>(object: T): Promise<UpdateResult<T>> {
    this.#wouldWrite(`update ${describeRef(refOf(object))}`);
    return { outcome: 'updated', object };
  }

  async mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<UpdateResult<T>> {
    const current = await this.#port.get<T>(ref);
    if (current === undefined) {
      return { outcome: 'notFound' };
    }
    this.#wouldWrite(`patch ${describeRef(ref)}`);
    return { outcome: 'updated', object: merged(current, patch) as T };
  }

  async delete(object: KubernetesObject): Promise<DeleteResult> {
    this.#wouldWrite(`delete ${describeRef(refOf(object))}`);
    return 'deleted';
  }
}

/** RFC 7396. */
function merged(target: unknown, patch: Json): unknown {
  if (!isObject(patch)) {
    return patch;
  }
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[field];
    } else if (value !== undefined) {
      result[field] = merged(result[field], value);
    }
  }
  return result;
}

function isObject<V>(value: V): value is V & Readonly<Record<string, Json | undefined>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
