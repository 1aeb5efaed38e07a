import { isRecord, type JsonRecord, mergePatch } from '../../lib/util/values.ts';
import type { StoredObject } from './object-store.ts';
import { badRequest, StatusError } from './resources.ts';

/** @throws StatusError if a body is not JSON */
export function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${String(error)}`);
  }
}

/** Returns the fields of a value; no fields if the value is not an object. */
export function jsonFieldsIn(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

/** Returns the objects in a list; no objects if the value is not a list. */
export function jsonListIn(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Returns the object in a body. @throws StatusError if the body is not an object of the API */
export function parsedObject(body: string): StoredObject {
  return objectIn(parsedJson(body));
}

/** Returns a function that checks whether the label selector and the field selector of a list select an object. */
export function selectorOf(query: URLSearchParams): (object: StoredObject) => boolean {
  const labels = termsOf(query, 'labelSelector');
  const fields = termsOf(query, 'fieldSelector');
  return (object) =>
    labels.every((term) => matches(term, (key) => object.metadata.labels?.[key])) &&
    fields.every((term) => matches(term, (key) => fieldAt(object, key)));
}

/** Returns the terms of equality selectors, such as `a=b,c!=d,e`. */
function termsOf(query: URLSearchParams, name: string): string[] {
  return (query.get(name) ?? '').split(',').filter(Boolean);
}

/** Returns whether a term matches. A term without an operator only requires that the key exists. */
function matches(term: string, read: (key: string) => string | undefined): boolean {
  const [, key = '', operator, value] = /^([^!=]+)(!=|==?)?(.*)$/s.exec(term.trim()) ?? [];
  const found = read(key);
  return operator === undefined ? found !== undefined : (found === value) === (operator !== '!=');
}

function fieldAt(object: StoredObject, key: string): string {
  const found = key.split('.').reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), object);
  return typeof found === 'string' ? found : '';
}

/** Returns the patched object. @throws StatusError if the type of the patch is unknown, or the result is not an object */
export function patched(target: StoredObject, body: string, contentType: string): StoredObject {
  const patch = parsedJson(body);
  if (contentType.startsWith('application/merge-patch+json')) return objectIn(mergePatch(target, patch));
  if (contentType.startsWith('application/strategic-merge-patch+json')) return objectIn(strategicMerged(target, patch));
  const types = 'application/merge-patch+json, application/strategic-merge-patch+json';
  const message = `the body of the request was in an unknown format - accepted media types include: ${types}`;
  throw new StatusError(415, 'UnsupportedMediaType', message);
}

/** Merges as RFC 7396 does, but merges the ports of a Service by port number. Ignores all directives except those for ports. */
function strategicMerged(target: StoredObject, patch: unknown): unknown {
  const spec = jsonFieldsIn(jsonFieldsIn(patch)['spec']);
  const result = jsonFieldsIn(withoutDirectives(mergePatch(target, patch)));
  if (target.kind !== 'Service' || !Array.isArray(spec['ports'])) return result;
  const ports = mergedPorts(jsonListIn(jsonFieldsIn(target['spec'])['ports']), spec);
  return { ...result, spec: { ...jsonFieldsIn(result['spec']), ports } };
}

function withoutDirectives(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([field]) => !field.startsWith('$'));
  return Object.fromEntries(kept.map(([field, each]) => [field, withoutDirectives(each)]));
}

function mergedPorts(ports: readonly JsonRecord[], patch: JsonRecord): JsonRecord[] {
  const byPort = new Map(ports.map((each) => [each['port'], each]));
  for (const { $patch, ...change } of jsonListIn(patch['ports'])) {
    if ($patch === 'delete') byPort.delete(change['port']);
    else byPort.set(change['port'], { ...byPort.get(change['port']), ...change });
  }
  const order = jsonListIn(patch['$setElementOrder/ports']);
  const placeOf = ({ port }: JsonRecord) => order.findIndex((each) => each['port'] === port);
  return [...byPort.values()].sort((one, other) => placeOf(one) - placeOf(other));
}

function objectIn(value: unknown): StoredObject {
  if (isRecord(value) && isRecord(value['metadata'])) return value as unknown as StoredObject;
  throw badRequest('the object provided is unrecognized (must be of type object with metadata)');
}
