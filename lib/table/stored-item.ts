import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { shapeFaults } from '../spec/shapes.ts';
import { defined } from '../util/values.ts';
import {
  type Item,
  type ItemKey,
  type NewItem,
  TableError,
  type TableValue,
  type WriteResult,
} from './key-value-table.ts';

/** Returns a text that no other item of the table has. */
export function idOf({ cluster, key }: ItemKey): string {
  return JSON.stringify([cluster, key]);
}

/** Returns the item that is stored after a successful write. */
export function itemOf(content: NewItem, previous: Item | undefined, writeId: string, nowMs: number): Item {
  const { cluster, key, value, schema, expiresAtMs, writesKept } = content;
  return {
    cluster,
    key,
    value: storedForm(value),
    writeId,
    ...(previous !== undefined && { earlierWrites: writesUpTo(previous, writesKept) }),
    version: (previous?.version ?? 0) + 1,
    schema,
    updatedAtMs: nowMs,
    ...defined({ expiresAtMs }),
  };
}

const WRITES_KEPT = 64;
/** The number of bytes of a trace, which is a hash of a write id. In one of 10^11 items, two writes have the same trace. */
const TRACE_BYTES = 6;

function writesUpTo({ writeId, earlierWrites = new Uint8Array() }: Item, writesKept = WRITES_KEPT): Uint8Array {
  const traces = Buffer.concat([earlierWrites, traceOf(writeId)]);
  return new Uint8Array(traces.subarray(-writesKept * TRACE_BYTES));
}

/** Returns whether the write of `item` over `previous` won; `undefined` if the current item does not show it. */
export function provenResult(
  item: Item,
  previous: Item | undefined,
  current: Item | undefined,
): WriteResult | undefined {
  if (current === undefined) return undefined;
  if (current.writeId === item.writeId || isFollowed(current, item.writeId)) return { outcome: 'won', item };
  return previous !== undefined && isFollowed(current, previous.writeId) ? { outcome: 'lost', current } : undefined;
}

/** Returns true if the item proves that another write followed the write with this id. */
function isFollowed({ earlierWrites = new Uint8Array() }: Item, writeId: string): boolean {
  const trace = traceOf(writeId);
  for (let at = 0; at < earlierWrites.length; at += TRACE_BYTES) {
    if (trace.equals(earlierWrites.subarray(at, at + TRACE_BYTES))) return true;
  }
  return false;
}

function traceOf(writeId: string): Buffer {
  return hash('sha256', writeId, 'buffer').subarray(0, TRACE_BYTES);
}

type Fields = { readonly [field: string]: TableValue | undefined };

export function isList(value: TableValue): value is readonly TableValue[] {
  return Array.isArray(value);
}

/** Returns the fields of a map; `undefined` for any other value. */
export function fieldsIn(value: TableValue): Fields | undefined {
  const isMap = typeof value === 'object' && value !== null && !isList(value) && !(value instanceof Uint8Array);
  return isMap ? value : undefined;
}

/** Returns plain data as a value of the table, because TypeScript does not accept an interface as `TableValue`. */
export function plainValue(data: object): TableValue {
  return data as TableValue;
}

/**
 * Returns a copy of the value in its stored form: undefined fields are dropped, and binary data becomes plain bytes.
 * @throws TableError `Unexpected` for a number that the table would not store exactly.
 */
function storedForm(value: TableValue): TableValue {
  if (typeof value === 'number') return storedNumber(value);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (isList(value)) return Array.from(value, storedForm);
  return Object.fromEntries(definedFields(value).map(([field, content]) => [field, storedForm(content)]));
}

export function sameValue(one: TableValue, other: TableValue): boolean {
  return isDeepStrictEqual(storedForm(one), storedForm(other));
}

/** Returns the approximate size of the value in an item. DynamoDB publishes no exact rule for numbers. */
export function storedSize(value: TableValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value === 'number') return 1 + Math.ceil(String(value).length / 2);
  if (value === null || typeof value !== 'object') return 1;
  if (value instanceof Uint8Array) return value.length;
  const parts = isList(value)
    ? value.map(storedSize)
    : definedFields(value).map(([field, content]) => storedSize(field) + storedSize(content));
  return 3 + parts.reduce((sum, size) => sum + size + 1, 0);
}

export function definedFields(fields: Fields): [string, TableValue][] {
  return Object.entries(fields).filter((entry): entry is [string, TableValue] => entry[1] !== undefined);
}

function storedNumber(value: number): number {
  if (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
  throw new TableError('Unexpected', `The table does not keep the number ${value} exactly; store it as text.`);
}

export const binary = z.instanceof(Uint8Array);

const FIRST_SCHEMA = 1;
const CORRECT_IT = 'correct it, or remove it to start again';

/**
 * Decodes an item of version `schema` or of the previous version. `shape` must fit the version in `item.schema`. Drops unknown
 * fields. `remedy` is the advice in the error.
 * @throws TableError `SchemaTooNew` if a later version wrote the item, `Corrupt` if the value does not parse.
 */
export function decodeItem<Value>(item: Item, shape: z.ZodMiniType<Value>, schema: number, remedy?: string): Value {
  if (item.schema > schema) {
    throw new TableError(
      'SchemaTooNew',
      `Item ${item.cluster}/${item.key} has schema ${item.schema} and this version reads ${schema}. It was not changed; deploy the newer version.`,
    );
  }
  if (item.schema < Math.max(FIRST_SCHEMA, schema - 1)) {
    throw corrupt(item, `its schema is ${item.schema}, which this version does not read`, remedy);
  }
  const parsed = shape.safeParse(item.value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  throw corrupt(item, shapeFaults({ issues: first === undefined ? [] : [first] }, 'its value'), remedy);
}

function corrupt({ cluster, key }: Item, what: string, remedy: string = CORRECT_IT): TableError {
  return new TableError('Corrupt', `Item ${cluster}/${key} does not parse: ${what}. It was not changed; ${remedy}.`);
}
