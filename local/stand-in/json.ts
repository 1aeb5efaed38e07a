import { badRequest } from './resources.ts';

export type JsonFields = Readonly<Record<string, unknown>>;

/** @throws StatusError if a body is not JSON */
export function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${String(error)}`);
  }
}

export function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the fields of a value; none if it is not an object. */
export function jsonFieldsIn(value: unknown): JsonFields {
  return isFields(value) ? value : {};
}

/** Returns the objects in a list; none if the value is not a list. */
export function jsonListIn(value: unknown): readonly JsonFields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
