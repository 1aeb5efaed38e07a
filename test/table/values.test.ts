import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import * as z from 'zod/mini';
import { attributesOf, itemFrom } from '../../lib/table/dynamodb/dynamodb-items.ts';
import type { TableValue } from '../../lib/table/key-value-table.ts';
import { decodeItem, itemOf, sameValue } from '../../lib/table/stored-item.ts';

const { value } = fc.letrec<{ value: TableValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, min: -1e15, max: 1e15 }).filter((number) => !Object.is(number, -0)),
    fc.string({ unit: 'grapheme' }),
    fc.uint8Array({ maxLength: 20 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string(), fc.oneof(tie('value'), fc.constant(undefined)), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test('a value is read back unchanged from the attributes of its item', () => {
  fc.assert(
    fc.property(value, (any) => {
      const item = itemOf({ cluster: 'c', key: 'k', value: any, schema: 1, expiresAtMs: 5 }, undefined, 'w', 1);
      expect(itemFrom(attributesOf(item))).toEqual(item);
    }),
  );
});

test.each<[boolean, string, TableValue, TableValue]>([
  [false, 'null and an absent field', { a: null }, {}],
  [false, 'a list of numbers and binary data with the same numbers', [1], new Uint8Array([1])],
  [false, "a list and a map with the list's indexes as keys", ['x'], { 0: 'x' }],
  [false, 'a field with the name of an inherited property and another field', { ['__proto__']: {} }, { a: {} }],
  [true, 'fields in another order', { a: 1, b: 2 }, { b: 2, a: 1 }],
  [true, 'an undefined and an absent field', { a: 1, b: undefined }, { a: 1 }],
  [true, 'a Buffer and plain bytes', Buffer.from([1, 2]), new Uint8Array([1, 2])],
])('sameValue returns %s for %s', (isSame, _, one, other) => {
  expect([sameValue(one, other), sameValue(other, one)]).toEqual([isSame, isSame]);
});

const REMEDY = 'It was not changed; correct it, or remove it to start again.';

test.each<[number, number, string | undefined]>([
  [1, 1, undefined],
  [1, 2, undefined],
  [2, 3, undefined],
  [2, 1, 'Item c/k has schema 2 and this version reads 1. It was not changed; deploy the newer version.'],
  [0, 1, `Item c/k does not parse: its schema is 0, which this version does not read. ${REMEDY}`],
  [1, 3, `Item c/k does not parse: its schema is 1, which this version does not read. ${REMEDY}`],
])('an item with schema %d is read by a version with schema %d with the error: %s', (schema, read, message) => {
  const item = { cluster: 'c', key: 'k', value: 5, schema, writeId: 'w', version: 1, updatedAtMs: 0 };
  const decode = () => decodeItem(item, z.number(), read);
  if (message === undefined) expect(decode()).toBe(5);
  else expect(decode).toThrow(message);
});
