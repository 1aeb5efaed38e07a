import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { boundedText, isRecord } from '../cluster/values.ts';

/** The most fields in the report of a difference, which counts the others, and the longest value. */
const MOST_PARTS = 8;
const LONGEST_VALUE = 80;

/** Fields that the API server writes. */
const OF_THE_SERVER = new Set(['managedFields', 'resourceVersion', 'uid', 'generation', 'creationTimestamp']);

/**
 * Returns which fields a write would change: `spec.type "NodePort" -> "ClusterIP"; spec.ports[0].nodePort - 30443`. An
 * object that would be created or deleted differs from one that has only its name.
 */
export function objectDifference(before: KubernetesObject, after: KubernetesObject): string {
  const parts = [...differences('', written(before), written(after))];
  const more = parts.length > MOST_PARTS ? [`and ${parts.length - MOST_PARTS} more`] : [];
  return [...parts.slice(0, MOST_PARTS), ...more].join('; ');
}

function written({ metadata, ...object }: KubernetesObject & { readonly status?: unknown }): object {
  const { apiVersion: _, kind: __, status: ___, ...fields } = object;
  const own = Object.entries(metadata).filter(([field]) => !OF_THE_SERVER.has(field));
  return { metadata: Object.fromEntries(own), ...fields };
}

/** Each level reads all of its values, so without a limit a deep object would take time in the square of its size. */
const DEEPEST = 8;

function* differences(path: string, before: unknown, after: unknown, depth = 0): Generator<string> {
  if (keyOf(before) === keyOf(after)) return;
  const [old, changed] = [before ?? {}, after ?? {}];
  if (depth < DEEPEST && Array.isArray(before) && Array.isArray(after)) {
    yield* listDifferences(path, before, after, depth + 1);
  } else if (depth < DEEPEST && isRecord(old) && isRecord(changed)) {
    for (const field of new Set([...Object.keys(old), ...Object.keys(changed)])) {
      yield* differences(path === '' ? field : `${path}.${field}`, old[field], changed[field], depth + 1);
    }
  } else if (isNothing(before)) yield `${path} + ${shown(after)}`;
  else if (isNothing(after)) yield `${path} - ${shown(before)}`;
  else yield `${path} ${shown(before)} -> ${shown(after)}`;
}

function* listDifferences(
  path: string,
  before: readonly unknown[],
  after: readonly unknown[],
  depth: number,
): Generator<string> {
  const [removed, added] = [itemsBut(before, after), itemsBut(after, before)];
  const [[gone] = [], [come] = []] = [removed, added];
  if (removed.length === 1 && added.length === 1 && gone !== undefined && come !== undefined) {
    yield* differences(`${path}[${gone.index}]`, gone.item, come.item, depth);
    return;
  }
  for (const { item } of removed) yield `${path} - ${shown(item)}`;
  for (const { item } of added) yield `${path} + ${shown(item)}`;
  if (removed.length + added.length === 0) yield `${path} in another order`;
}

function itemsBut(items: readonly unknown[], others: readonly unknown[]) {
  const known = new Set(others.map(keyOf));
  return items.flatMap((item, index) => (known.has(keyOf(item)) ? [] : [{ item, index }]));
}

/** Returns whether the API treats the value like an absent field, as it does null and an empty list. */
function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Returns a text that is the same for values that are the same to the API. */
function keyOf(value: unknown): string {
  if (isNothing(value)) return '';
  if (Array.isArray(value)) return `[${value.map(keyOf).join()}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.keys(value)
    .filter((field) => !isNothing(value[field]))
    .sort();
  return `{${fields.map((field) => `${JSON.stringify(field)}:${keyOf(value[field])}`).join()}}`;
}

function shown(value: unknown): string {
  return boundedText(JSON.stringify(value), LONGEST_VALUE);
}
