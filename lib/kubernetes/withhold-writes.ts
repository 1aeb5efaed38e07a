import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { describePublished } from '../endpoints/objects.ts';
import { type ClusterPort, describeRef, type Kind, type ObjectRef, refOf } from './cluster-port.ts';
import { objectDifference } from './object-difference.ts';

/**
 * Returns a port that reads like `port` and writes nothing: each write is reported (`create Namespace kube-system`) and
 * answered as withheld. An update of an object that was read is reported with the fields that it would change.
 */
export function withholdWrites(port: ClusterPort, wouldWrite: (description: string) => void): ClusterPort {
  const read = new Map<string, KubernetesObject>();
  const change = (object: KubernetesObject) => {
    const before = read.get(describeRef(refOf(object)));
    const difference = before === undefined ? '' : objectDifference(before, object);
    return difference === '' ? '' : `: ${difference}`;
  };
  const withheld = async <T extends KubernetesObject>(verb: 'create' | 'update', object: T) => {
    const fields = verb === 'update' ? change(object) : '';
    wouldWrite(`${verb} ${describeRef(refOf(object))}${describePublished(object)}${fields}`);
    return { outcome: 'withheld', object } as const;
  };
  return {
    ...port,
    get: async <T extends KubernetesObject>(ref: ObjectRef) => {
      const object = await port.get<T>(ref);
      if (object !== undefined) read.set(describeRef(ref), object);
      return object;
    },
    list: async <T extends KubernetesObject>(kind: Kind, namespace: string | undefined, labelSelector?: string) => {
      const objects = await port.list<T>(kind, namespace, labelSelector);
      for (const object of objects) {
        const { name, namespace: own = '' } = object.metadata;
        read.set(describeRef({ kind, name, ...(own !== '' && { namespace: own }) }), object);
      }
      return objects;
    },
    create: (object) => withheld('create', object),
    update: (object) => withheld('update', object),
    mergePatch: async (ref) => {
      wouldWrite(`patch ${describeRef(ref)}`);
      return { outcome: 'withheld' };
    },
    delete: async (object) => {
      wouldWrite(`delete ${describeRef(refOf(object))}`);
      return 'withheld';
    },
  };
}
