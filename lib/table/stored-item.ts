import { createHash } from 'node:crypto';
import { storedForm } from './item-values.ts';
import type { Item, NewItem } from './key-value-table.ts';

/** Returns the item that a successful write leaves. */
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
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}

/** How many writes before its last one an item remembers, unless its writer asks for fewer. */
const WRITES_KEPT = 64;
/** Of the hash of a write id. Two of the writes in one item have the same in one of 10^11 items. */
const TRACE_BYTES = 6;

/** Returns what the item that follows `previous` remembers: traces of the writes before it, the latest last. */
function writesUpTo({ writeId, earlierWrites = new Uint8Array() }: Item, writesKept = WRITES_KEPT): Uint8Array {
  const traces = Buffer.concat([earlierWrites, traceOf(writeId)]);
  return new Uint8Array(traces.subarray(-writesKept * TRACE_BYTES));
}

/**
 * Returns what became of a write over `previous`, by the item that is there now; `undefined` when that proves neither.
 * A delete has no `writeId`.
 */
export function provenOutcome(
  there: Item | undefined,
  previous: Item | undefined,
  writeId: string | undefined,
): 'won' | 'lost' | undefined {
  if (there === undefined) return undefined;
  if (writeId !== undefined && (there.writeId === writeId || isFollowed(there, writeId))) return 'won';
  return previous !== undefined && isFollowed(there, previous.writeId) ? 'lost' : undefined;
}

/** Reports whether the item is known to have been written over since this write. */
function isFollowed({ earlierWrites = new Uint8Array() }: Item, writeId: string): boolean {
  const trace = traceOf(writeId);
  for (let at = 0; at < earlierWrites.length; at += TRACE_BYTES) {
    if (trace.equals(earlierWrites.subarray(at, at + TRACE_BYTES))) return true;
  }
  return false;
}

function traceOf(writeId: string): Buffer {
  return createHash('sha256').update(writeId).digest().subarray(0, TRACE_BYTES);
}
