import * as z from 'zod/mini';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { decodeItem } from '../../lib/table/stored-item.ts';

/** A cluster name cannot begin with "#". */
const TICKS = '#ticks';
const SCHEMA = 1;

const claimShape = z.object({
  dueAtMs: z.number(),
  /** Only for users. */
  by: z.string(),
});

export interface Tick {
  readonly stack: string;
  readonly loop: Loop;
  readonly everyMs: number;
  /** A multiple of `everyMs`. */
  readonly dueAtMs: number;
}

/**
 * Writes `#ticks/<stack>/<loop>`, the last claimed tick of a loop. Of the processes that claim a tick, one gets it.
 * @returns whether the caller runs the tick
 */
export async function claimTick(
  table: KeyValueTable,
  { stack, loop, everyMs, dueAtMs }: Tick,
  by: string,
): Promise<boolean> {
  const key = `${stack}/${loop}`;
  const previous = await table.get(TICKS, key);
  const claimed = previous && decodeItem(previous, claimShape, SCHEMA).dueAtMs;
  // A claim that is further ahead was made by a process whose clock was ahead. It must not stop the loop.
  if (claimed !== undefined && claimed >= dueAtMs && claimed <= dueAtMs + everyMs) return false;
  const item = { cluster: TICKS, key, schema: SCHEMA, value: { dueAtMs, by }, writesKept: 8 };
  const { outcome } = await table.put(item, previous);
  return outcome === 'won';
}
