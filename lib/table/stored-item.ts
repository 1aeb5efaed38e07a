import type { Item, NewItem } from './key-value-table.ts';
import { storedForm } from './values.ts';

/** The item that a won write leaves. */
export function itemOf(content: NewItem, previous: Item | undefined, writeId: string, nowMs: number): Item {
  const { cluster, key, value, schema, expiresAtMs } = content;
  return {
    cluster,
    key,
    value: storedForm(value),
    writeId,
    version: (previous?.version ?? 0) + 1,
    schema,
    updatedAtMs: nowMs,
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}
