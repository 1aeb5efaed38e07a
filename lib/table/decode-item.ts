import * as z from 'zod/mini';
import { shapeFaults } from '../cluster/shapes.ts';
import { TableError } from './errors.ts';
import type { Item } from './key-value-table.ts';

/** An integer of at least 0. */
export const count = z.int().check(z.gte(0));
export const binary = z.instanceof(Uint8Array);

const FIRST_SCHEMA = 1;
const CORRECT_IT = 'correct it, or remove it to start again';

/**
 * Returns the value of an item in a shape of `schema` or the previous one; `item.schema` distinguishes them. Unknown
 * fields are dropped. `remedy` is the action for an item that does not parse.
 * @throws TableError `SchemaTooNew` for an item of a later version, `Corrupt` for one that does not parse.
 */
export function decodeItem<Value>(item: Item, shape: z.ZodMiniType<Value>, schema: number, remedy?: string): Value {
  checkSchema(item, schema, remedy);
  const parsed = shape.safeParse(item.value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  throw corrupt(item, shapeFaults({ issues: first === undefined ? [] : [first] }, 'its value'), remedy);
}

function checkSchema(item: Item, schema: number, remedy?: string): void {
  if (item.schema > schema) {
    throw new TableError(
      'SchemaTooNew',
      `Item ${item.cluster}/${item.key} has schema ${item.schema} and this version reads ${schema}. It was not changed; deploy the newer version.`,
    );
  }
  if (item.schema < Math.max(FIRST_SCHEMA, schema - 1)) {
    const versions = item.schema < FIRST_SCHEMA ? 'no' : 'only an older';
    throw corrupt(item, `its schema is ${item.schema}, which ${versions} version wrote`, remedy);
  }
}

function corrupt({ cluster, key }: Item, what: string, remedy: string = CORRECT_IT): TableError {
  return new TableError('Corrupt', `Item ${cluster}/${key} does not parse: ${what}. It was not changed; ${remedy}.`);
}
