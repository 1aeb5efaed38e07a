import { TableError } from './errors.ts';
import type { TableValue } from './key-value-table.ts';

type Fields = { readonly [field: string]: TableValue | undefined };

const utf8 = new TextEncoder();

export function isList(value: TableValue): value is readonly TableValue[] {
  return Array.isArray(value);
}

/** The fields of a map; `undefined` for any other value. */
export function fieldsIn(value: TableValue): Fields | undefined {
  const isMap = typeof value === 'object' && value !== null && !isList(value) && !(value instanceof Uint8Array);
  return isMap ? value : undefined;
}

/**
 * A copy of the value as every table keeps it: fields that are undefined dropped, binary as plain bytes.
 * @throws TableError `Unexpected` for a number that would come back as another.
 */
export function storedForm(value: TableValue): TableValue {
  if (typeof value === 'number') return storedNumber(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value === null || typeof value !== 'object') return value;
  if (isList(value)) return value.map(storedForm);
  return Object.fromEntries(definedFields(value).map(([field, content]) => [field, storedForm(content)]));
}

/** Whether both would be stored alike. */
export function sameValue(one: TableValue, other: TableValue): boolean {
  if (one instanceof Uint8Array || other instanceof Uint8Array) {
    return one instanceof Uint8Array && other instanceof Uint8Array && sameBytes(one, other);
  }
  if (one === null || other === null || typeof one !== 'object' || typeof other !== 'object') return one === other;
  if (isList(one) || isList(other)) return isList(one) && isList(other) && sameList(one, other);
  return sameFields(one, other);
}

/** How many bytes the value takes in an item, as DynamoDB counts them (about: it publishes no exact rule for numbers). */
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

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

function sameList(one: readonly TableValue[], other: readonly TableValue[]): boolean {
  return one.length === other.length && one.every((element, index) => sameValue(element, other[index] ?? null));
}

function sameFields(one: Fields, other: Fields): boolean {
  const fields = definedFields(one);
  if (fields.length !== definedFields(other).length) return false;
  return fields.every(([field, content]) => {
    const counterpart = Object.hasOwn(other, field) ? other[field] : undefined;
    return counterpart !== undefined && sameValue(content, counterpart);
  });
}
