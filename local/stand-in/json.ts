import { badRequest } from './resources.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** @throws StatusError if a body is not JSON */
export function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${String(error)}`);
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the fields of a value; none if it is not an object. */
export function fieldsIn(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** Returns the objects in a list; none if the value is not a list. */
export function listIn(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
