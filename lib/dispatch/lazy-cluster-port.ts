import type { Json, KubernetesObject } from '../cluster/kubernetes-objects.ts';
import type { ClusterPort, Kind, ObjectRef } from '../kubernetes/cluster-port.ts';

/** A port that is opened by its first call. When that fails the call does, with the same error, and the next one tries again. */
export function lazyClusterPort(connect: () => Promise<ClusterPort>): ClusterPort {
  let opened: Promise<ClusterPort> | undefined;
  const port = (): Promise<ClusterPort> => {
    opened ??= connect().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return {
    get: async <T extends KubernetesObject>(ref: ObjectRef) => (await port()).get<T>(ref),
    list: async <T extends KubernetesObject>(kind: Kind, namespace: string | undefined, labelSelector?: string) =>
      (await port()).list<T>(kind, namespace, labelSelector),
    create: async <T extends KubernetesObject>(object: T) => (await port()).create(object),
    update: async <T extends KubernetesObject>(object: T) => (await port()).update(object),
    mergePatch: async <T extends KubernetesObject>(ref: ObjectRef, patch: Json) =>
      (await port()).mergePatch<T>(ref, patch),
    delete: async (object) => (await port()).delete(object),
    async *services() {
      yield* (await port()).services();
    },
  };
}
