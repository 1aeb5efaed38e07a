import { isDeepStrictEqual } from 'node:util';
import { checkSchema, corruptItem } from './decode-item.ts';
import { TableError } from './errors.ts';
import type { Item, TableValue } from './key-value-table.ts';

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

/** Interfaces of plain data are values of the table, which TypeScript accepts of type aliases alone. */
export function plainValue(data: object): TableValue {
  return data as TableValue;
}

/**
 * A copy of the value as every table keeps it: fields that are undefined dropped, binary as plain bytes.
 * @throws TableError `Unexpected` for a number that the table would change.
 */
export function storedForm(value: TableValue): TableValue {
  if (typeof value === 'number') return storedNumber(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value === null || typeof value !== 'object') return value;
  if (isList(value)) return Array.from(value, storedForm);
  return Object.fromEntries(definedFields(value).map(([field, content]) => [field, storedForm(content)]));
}

/** Whether both are stored alike. */
export function sameValue(one: TableValue, other: TableValue): boolean {
  return isDeepStrictEqual(storedForm(one), storedForm(other));
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

/** Reads the fields of a stored value, each of the kind that is asked for; anything else is `Corrupt`. */
export interface ItemFields {
  optionalText(field: string): string | undefined;
  /** A whole number of at least 0. */
  count(field: string): number;
  flag(field: string): boolean;
  oneOf<Text extends string>(field: string, texts: readonly Text[]): Text;
  number(field: string): number;
  optionalNumber(field: string): number | undefined;
  fields(field: string): ItemFields;
}

/**
 * Returns a reader of the fields of an item's value. `remedy` is what to do about an item that does not parse.
 * @throws TableError `SchemaTooNew` for an item that a later version wrote, `Corrupt` for one that does not parse.
 */
export function fieldsOf(item: Item, schema: number, remedy?: string): ItemFields {
  checkSchema(item, schema, remedy);
  return reader((what) => corruptItem(item, what, remedy), '', item.value);
}

function reader(corrupt: (what: string) => TableError, path: string, value: TableValue): ItemFields {
  const fields = fieldsIn(value);
  if (fields === undefined) throw corrupt(`${path === '' ? 'its value' : path.slice(0, -1)} is not a map`);

  /** The field when it is of the kind wanted, `undefined` when there is none. */
  const optional = <Kind extends TableValue>(field: string, kind: string, is: (v: TableValue) => v is Kind) => {
    const content = fields[field];
    if (content === undefined) return undefined;
    if (!is(content)) throw corrupt(`${path}${field} is not ${kind}`);
    return content;
  };
  const required = <Kind>(field: string, content: Kind | undefined): Kind => {
    if (content === undefined) throw corrupt(`${path}${field} is missing`);
    return content;
  };
  const optionalText = (field: string) => optional(field, 'text', isText);
  const optionalNumber = (field: string) => optional(field, 'a number', isNumber);

  return {
    optionalText,
    optionalNumber,
    count: (field) => required(field, optional(field, 'a whole number of at least 0', isCount)),
    number: (field) => required(field, optionalNumber(field)),
    flag: (field) => required(field, optional(field, 'true or false', isFlag)),
    fields: (field) => reader(corrupt, `${path}${field}.`, required(field, fields[field])),
    oneOf: (field, texts) => {
      const text = required(field, optionalText(field));
      const found = texts.find((candidate) => candidate === text);
      if (found === undefined) throw corrupt(`${path}${field} is none of ${texts.join(', ')}`);
      return found;
    },
  };
}

function isText(value: TableValue): value is string {
  return typeof value === 'string';
}

function isCount(value: TableValue): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isNumber(value: TableValue): value is number {
  return typeof value === 'number';
}

function isFlag(value: TableValue): value is boolean {
  return typeof value === 'boolean';
}
