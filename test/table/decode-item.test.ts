import { expect, test } from '@jest/globals';
import * as z from 'zod/mini';
import { decodeItem } from '../../lib/table/stored-item.ts';

const REMEDY = 'It was not changed; correct it, or remove it to start again.';

test.each<[number, number, string | undefined]>([
  [1, 1, undefined],
  [1, 2, undefined],
  [2, 3, undefined],
  [2, 1, 'Item c/k has schema 2 and this version reads 1. It was not changed; deploy the newer version.'],
  [0, 1, `Item c/k does not parse: its schema is 0, which no version wrote. ${REMEDY}`],
  [1, 3, `Item c/k does not parse: its schema is 1, which only an older version wrote. ${REMEDY}`],
])('the read of an item with schema %d by a version with schema %d fails with: %s', (schema, read, message) => {
  const item = { cluster: 'c', key: 'k', value: 5, schema, writeId: 'w', version: 1, updatedAtMs: 0 };
  const decode = () => decodeItem(item, z.number(), read);
  if (message === undefined) expect(decode()).toBe(5);
  else expect(decode).toThrow(message);
});
