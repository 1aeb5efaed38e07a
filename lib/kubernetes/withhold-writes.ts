import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { isRecord } from '../cluster/values.ts';
import { describePublished } from '../endpoints/objects.ts';
import { type ClusterPort, describeRef, type Kind, type ObjectRef, refOf } from './cluster-port.ts';
import { objectDifference } from './object-difference.ts';

/**
 * Returns a port that reads like `port` and writes nothing: each write is reported (`create Namespace kube-system`) and
 * answered as withheld. The report has the fields that differ from the object as it was read.
 */
export function withholdWrites(port: ClusterPort, wouldWrite: (description: string) => void): ClusterPort {
  const read = new Map<string, KubernetesObject>();
  const report = (verb: string, ref: ObjectRef, fields: string) => wouldWrite(`${verb} ${describeRef(ref)}${fields}`);
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
    create: async (object) => {
      report('create', refOf(object), describePublished(object) || changeOf(named(object), object));
      return { outcome: 'withheld', object };
    },
    update: async (object) => {
      const ref = refOf(object);
      report('update', ref, `${describePublished(object)}${changeOf(read.get(describeRef(ref)) ?? object, object)}`);
      return { outcome: 'withheld', object };
    },
    mergePatch: async (ref, patch) => {
      const before = read.get(describeRef(ref));
      report('patch', ref, before === undefined ? '' : changeOf(before, merged(before, patch) as KubernetesObject));
      return { outcome: 'withheld' };
    },
    delete: async (object) => {
      const ref = refOf(object);
      const before = read.get(describeRef(ref)) ?? object;
      report('delete', ref, describePublished(before) || changeOf(before, named(before)));
      return 'withheld';
    },
  };
}

function changeOf(before: KubernetesObject, after: KubernetesObject): string {
  const difference = objectDifference(before, after);
  return difference === '' ? '' : `: ${difference}`;
}

/** Returns the object without its fields. */
function named({ metadata: { name, namespace } }: KubernetesObject): KubernetesObject {
  return { metadata: { name, ...(namespace !== undefined && { namespace }) } };
}

/** Returns the value after a merge patch. No pass removes a field by one. */
function merged(before: unknown, patch: unknown): unknown {
  if (!isRecord(before) || !isRecord(patch)) return patch;
  const fields = Object.entries(patch).map(([field, value]) => [field, merged(before[field], value)]);
  return { ...before, ...Object.fromEntries(fields) };
}
