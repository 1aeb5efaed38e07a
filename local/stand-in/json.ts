import { isRecord, type JsonRecord } from '../../lib/util/values.ts';
import { badRequest } from './resources.ts';

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

export function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
