import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { describePublished, isNothing, sameJson } from '../cluster/published-objects.ts';
import { boundedText, defined, isRecord, mergePatch } from '../util/values.ts';
import { type ClusterPort, describeRef, type Kind, type ObjectRef, refOf } from './cluster-port.ts';

/** Returns a client that reads through `port`. Instead of sending a write, it reports which fields the write would change. */
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
      report('patch', ref, before === undefined ? '' : changeOf(before, mergePatch(before, patch) as KubernetesObject));
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

function named({ metadata: { name, namespace } }: KubernetesObject): KubernetesObject {
  return { metadata: { name, ...defined({ namespace }) } };
}

/** The maximum number of fields that are listed. Further fields are only counted. */
const MOST_PARTS = 8;
const LONGEST_VALUE = 80;

const OF_THE_SERVER = new Set(['managedFields', 'resourceVersion', 'uid', 'generation', 'creationTimestamp']);

/**
 * Returns which fields a write would change: `: spec.type "NodePort" -> "ClusterIP"; spec.ports[0].nodePort - 30443`.
 * An object that would be created or deleted is compared with an object that has only a name.
 */
function changeOf(before: KubernetesObject, after: KubernetesObject): string {
  const parts = [...differences('', written(before), written(after))];
  const more = parts.length > MOST_PARTS ? [`and ${parts.length - MOST_PARTS} more`] : [];
  return parts.length === 0 ? '' : `: ${[...parts.slice(0, MOST_PARTS), ...more].join('; ')}`;
}

function written({ metadata, ...object }: KubernetesObject & { readonly status?: unknown }): object {
  const { apiVersion: _, kind: __, status: ___, ...fields } = object;
  const own = Object.entries(metadata).filter(([field]) => !OF_THE_SERVER.has(field));
  return { metadata: Object.fromEntries(own), ...fields };
}

/** The deepest level that is compared. Each comparison reads all levels below, so a deep object would take quadratic time. */
const DEEPEST = 8;

function* differences(path: string, before: unknown, after: unknown, depth = 0): Generator<string> {
  if (sameJson(before, after)) return;
  const areAlike = depth < DEEPEST && Array.isArray(before) === Array.isArray(after);
  const [old, changed] = areAlike ? [partsOf(before), partsOf(after)] : [];
  if (old !== undefined && changed !== undefined) {
    for (const step of new Set([...old.keys(), ...changed.keys()])) {
      yield* differences(path + step, old.get(step), changed.get(step), depth + 1);
    }
  } else if (isNothing(before)) yield `${path.slice(1)} + ${shown(after)}`;
  else if (isNothing(after)) yield `${path.slice(1)} - ${shown(before)}`;
  else yield `${path.slice(1)} ${shown(before)} -> ${shown(after)}`;
}

/** Returns the fields of an object or the items of a list. The keys are path steps, such as `.spec` or `[0]`. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (Array.isArray(value)) return new Map(value.map((item, index) => [`[${index}]`, item]));
  const fields = value ?? {};
  return isRecord(fields) ? new Map(Object.entries(fields).map(([field, own]) => [`.${field}`, own])) : undefined;
}

function shown(value: unknown): string {
  return boundedText(JSON.stringify(value), LONGEST_VALUE);
}
