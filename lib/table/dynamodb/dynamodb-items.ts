import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import * as z from 'zod/mini';
import { attempt } from '../../util/values.ts';
import { type Item, TableError, type TableValue } from '../key-value-table.ts';
import { binary, definedFields, fieldsIn, isList } from '../stored-item.ts';

type Attributes = Record<string, AttributeValue>;

/** The least time between the expiry of an item and its removal by DynamoDB. By then, the item has expired on all clocks. */
const SWEEP_DELAY_MS = 60 * 60 * 1000;

/** Returns the attributes of an item. Only DynamoDB's TTL reads the attribute `ttl`. */
export function attributesOf(item: Item): Attributes {
  const { value, writeId, earlierWrites, version, schema, updatedAtMs, expiresAtMs } = item;
  return {
    ...keyOf(item),
    ...attributesOfFields({ value, writeId, earlierWrites, version, schema }),
    updatedAt: { S: new Date(updatedAtMs).toISOString() },
    ...(expiresAtMs !== undefined && {
      expiresAtMs: { N: String(expiresAtMs) },
      ttl: { N: String(Math.ceil((expiresAtMs + SWEEP_DELAY_MS) / 1000)) },
    }),
  };
}

export function keyOf({ cluster, key }: { readonly cluster: string; readonly key: string }): Attributes {
  return { cluster: { S: cluster }, key: { S: key } };
}

const itemShape = z.object({
  cluster: z.string(),
  key: z.string(),
  value: z.custom<TableValue>((value) => value !== undefined),
  writeId: z.string(),
  earlierWrites: z.exactOptional(binary),
  version: z.number(),
  schema: z.number(),
  updatedAt: z.pipe(
    z.transform((text) => Date.parse(String(text))),
    z.number(),
  ),
  expiresAtMs: z.exactOptional(z.number()),
});

/** @throws TableError `Corrupt` for an item that no version of this program wrote. */
export function itemFrom(attributes: Attributes): Item {
  const fields = Object.entries(attributes).map(([field, attribute]) => [field, valueFrom(attribute)]);
  const parsed = itemShape.safeParse(Object.fromEntries(fields));
  if (parsed.success) {
    const { updatedAt: updatedAtMs, ...item } = parsed.data;
    return { ...item, updatedAtMs };
  }
  throw new TableError(
    'Corrupt',
    `Item ${attributes['cluster']?.S}/${attributes['key']?.S} has no readable attribute "${String(parsed.error.issues[0]?.path[0])}": it was not written by this program; remove or correct it.`,
  );
}

/**
 * Decodes an item of a list. An item that no version of this program wrote gets schema 0, and the reader of the item
 * reports it as corrupt. An error here would hide the other items of the list.
 */
export function listedItemFrom(attributes: Attributes): Item {
  const [cluster = '', key = ''] = [attributes['cluster']?.S, attributes['key']?.S];
  const unreadable = { cluster, key, value: null, writeId: '', version: 0, schema: 0, updatedAtMs: 0 };
  return attempt(() => itemFrom(attributes)) ?? unreadable;
}

function attributeOf(value: TableValue): AttributeValue {
  if (value === null) return { NULL: true };
  if (typeof value === 'boolean') return { BOOL: value };
  if (typeof value === 'number') return { N: String(value) };
  if (typeof value === 'string') return { S: value };
  if (value instanceof Uint8Array) return { B: value };
  if (isList(value)) return { L: value.map(attributeOf) };
  return { M: attributesOfFields(fieldsIn(value) ?? {}) };
}

function attributesOfFields(fields: { readonly [field: string]: TableValue | undefined }): Attributes {
  return Object.fromEntries(definedFields(fields).map(([field, content]) => [field, attributeOf(content)]));
}

/** Decodes an attribute. Returns `undefined` for a type that this program never writes, such as a set. */
function valueFrom(attribute: AttributeValue): TableValue | undefined {
  if (attribute.NULL !== undefined) return null;
  if (attribute.BOOL !== undefined) return attribute.BOOL;
  if (attribute.N !== undefined) return Number(attribute.N);
  if (attribute.S !== undefined) return attribute.S;
  if (attribute.B !== undefined) return new Uint8Array(attribute.B);
  if (attribute.L !== undefined) return listFrom(attribute.L);
  if (attribute.M !== undefined) return mapFrom(attribute.M);
  return undefined;
}

function listFrom(attributes: readonly AttributeValue[]): TableValue | undefined {
  const values = attributes.map(valueFrom);
  return values.every((value) => value !== undefined) ? values : undefined;
}

function mapFrom(attributes: Attributes): TableValue | undefined {
  const entries = Object.entries(attributes).map(([field, attribute]) => [field, valueFrom(attribute)] as const);
  return entries.every(([, value]) => value !== undefined) ? Object.fromEntries(entries) : undefined;
}
