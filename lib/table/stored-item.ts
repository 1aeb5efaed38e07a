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

/** How many earlier writes an item remembers by default. */
const WRITES_KEPT = 64;
/** Bytes of the hash of a write id. Two writes of one item collide in one of 10^11 items. */
const TRACE_BYTES = 6;

/** Returns the traces for the item that follows `previous`: those of the earlier writes, the latest last. */
function writesUpTo({ writeId, earlierWrites = new Uint8Array() }: Item, writesKept = WRITES_KEPT): Uint8Array {
  const traces = Buffer.concat([earlierWrites, traceOf(writeId)]);
  return new Uint8Array(traces.subarray(-writesKept * TRACE_BYTES));
}

/**
 * Returns the outcome of a write over `previous`, derived from the present item; `undefined` if it proves neither. A
 * delete has no `writeId`.
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
