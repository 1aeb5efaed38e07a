import { writesUpTo } from './earlier-writes.ts';
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
    ...(previous !== undefined && { earlierWrites: writesUpTo(previous) }),
    version: (previous?.version ?? 0) + 1,
    schema,
    updatedAtMs: nowMs,
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}
