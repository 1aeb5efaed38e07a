import { isDeepStrictEqual } from 'node:util';
import { TableError } from './errors.ts';
import type { TableValue } from './key-value-table.ts';

type Fields = { readonly [field: string]: TableValue | undefined };

const utf8 = new TextEncoder();

export function isList(value: TableValue): value is readonly TableValue[] {
  return Array.isArray(value);
}

/** Returns the fields of a map; `undefined` for any other value. */
export function fieldsIn(value: TableValue): Fields | undefined {
  const isMap = typeof value === 'object' && value !== null && !isList(value) && !(value instanceof Uint8Array);
  return isMap ? value : undefined;
}

/** Returns plain data as a value of the table: TypeScript accepts interfaces only this way. */
export function plainValue(data: object): TableValue {
  return data as TableValue;
}

/**
 * Returns a copy of the value in its stored form: without undefined fields, binary as plain bytes.
 * @throws TableError `Unexpected` for a number that the table would change.
 */
export function storedForm(value: TableValue): TableValue {
  if (typeof value === 'number') return storedNumber(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value === null || typeof value !== 'object') return value;
  if (isList(value)) return Array.from(value, storedForm);
  return Object.fromEntries(definedFields(value).map(([field, content]) => [field, storedForm(content)]));
}

export function sameValue(one: TableValue, other: TableValue): boolean {
  return isDeepStrictEqual(storedForm(one), storedForm(other));
}

/**
 * Returns the size of the value in an item, as DynamoDB counts it (approximately: it publishes no exact rule for
 * numbers).
 */
export function storedSize(value: TableValue): number {
  if (typeof value === 'string') return utf8.encode(value).length;
  if (typeof value === 'number') return 1 + Math.ceil(String(value).length / 2);
  if (value instanceof Uint8Array) return value.length;
  if (value === null || typeof value !== 'object') return 1;
  const parts = isList(value)
    ? value.map(storedSize)
    : definedFields(value).map(([field, content]) => storedSize(field) + storedSize(content));
  return 3 + parts.reduce((sum, size) => sum + size + 1, 0);
}

export function definedFields(fields: Fields): [string, TableValue][] {
  return Object.entries(fields).flatMap(([field, content]) => (content === undefined ? [] : [[field, content]]));
}

function storedNumber(value: number): number {
  if (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
  throw new TableError('Unexpected', `The table does not keep the number ${value} exactly; store it as text.`);
}
