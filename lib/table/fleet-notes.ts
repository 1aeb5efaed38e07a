import * as z from 'zod/mini';
import type { Loop } from '../spec/cluster-spec.ts';
import { count } from '../spec/shapes.ts';
import { type Item, type KeyValueTable, TableError } from './key-value-table.ts';
import { decodeItem, plainValue } from './stored-item.ts';

/** A partition that no cluster has, because a cluster name cannot begin with "#". */
const FLEET = '#fleet';
const SCHEMA = 1;
const SUSPECTS = 'suspects/';

const suspectShape = z.object({
  /** The last time at which a process ended or was blocked while it ran passes of the suspect cluster. */
  sinceMs: z.number(),
  /** Until this time, the passes of the suspect cluster run separately from the passes of other clusters. */
  untilMs: z.number(),
  accidents: count,
  /**
   * `unproven`: the cluster may be the cause of the accident. `proven`: the cluster is proven harmless, because a later pass of
   * the cluster had no accident. `again`: the cluster is the cause, because a process that ran only this cluster had an accident.
   */
  state: z.enum(['unproven', 'proven', 'again']),
});

/** A cluster whose pass ran in a process that ended or was blocked. Another cluster of the same process may be the cause. */
export type Suspect = Readonly<z.infer<typeof suspectShape>>;

function fleetPrefix(stack: string, loop: Loop): string {
  return `${stack}/${loop}/`;
}

/** @throws TableError `SchemaTooNew`. */
export async function listFleetNotes(table: KeyValueTable, stack: string, loop: Loop) {
  const prefix = fleetPrefix(stack, loop);
  /** Clusters that did not answer a pass of the loop within about the last day. They may have answered since. */
  const unreachable: string[] = [];
  /** Suspects and former suspects. If a former suspect has another accident, `accidents` continues from the earlier number. */
  const suspects = new Map<string, { readonly suspect: Suspect; readonly item: Item }>();
  /** The corrupt items of suspect clusters. The next `writeSuspect` for a cluster replaces the corrupt item of the cluster. */
  const unreadable = new Map<string, { readonly item: Item; readonly error: TableError }>();
  for (const item of await table.list(FLEET, prefix)) {
    const key = item.key.slice(prefix.length);
    if (!key.startsWith(SUSPECTS)) {
      unreachable.push(key);
      continue;
    }
    const name = key.slice(SUSPECTS.length);
    try {
      suspects.set(name, { suspect: decodeItem(item, suspectShape, SCHEMA), item });
    } catch (error) {
      if (!(error instanceof TableError) || error.code !== 'Corrupt') throw error;
      unreadable.set(name, { item, error });
    }
  }
  return { unreachable, suspects, unreadable };
}

const HOUR_MS = 60 * 60_000;
const LONGEST_ALONE_MS = 24 * HOUR_MS;
const REMEMBERED_MS = 7 * 24 * HOUR_MS;
/**
 * For this long after its last accident, another accident of a suspect counts only if the process ran suspects alone. The
 * message to any other process may have been queued before the suspect got separate messages.
 */
const QUEUED_BEFORE_MS = 60_000;

/** The end or block of a process during passes. */
export interface Accident {
  readonly atMs: number;
  /** The clusters whose passes ran in the process. */
  readonly clusters: readonly string[];
  /** True if the process ran only suspect clusters. */
  readonly ofSuspects: boolean;
}

/** Returns the suspect after one more accident; `undefined` if this accident does not count, or was already counted. */
export function afterAccident(
  known: Suspect | undefined,
  { atMs, clusters, ofSuspects }: Accident,
  nowMs: number,
): Suspect | undefined {
  if (known !== undefined && atMs < known.sinceMs + (ofSuspects ? 0 : QUEUED_BEFORE_MS)) return undefined;
  const accidents = (known?.accidents ?? 0) + 1;
  return {
    sinceMs: nowMs,
    untilMs: nowMs + Math.min(LONGEST_ALONE_MS, HOUR_MS * 2 ** (accidents - 1)),
    accidents,
    state: known?.state === 'again' || (ofSuspects && clusters.length === 1) ? 'again' : 'unproven',
  };
}

/** Writes `#fleet/<stack>/<loop>/suspects/<cluster>`. Returns false if another writer has changed this item. */
export async function writeSuspect(
  table: KeyValueTable,
  { stack, loop, cluster }: { readonly stack: string; readonly loop: Loop; readonly cluster: string },
  suspect: Suspect,
  previous: Item | undefined,
): Promise<boolean> {
  const key = `${fleetPrefix(stack, loop)}${SUSPECTS}${cluster}`;
  const expiresAtMs = suspect.untilMs + REMEMBERED_MS;
  const item = { cluster: FLEET, key, value: plainValue(suspect), schema: SCHEMA, expiresAtMs, writesKept: 8 };
  const { outcome } = await table.put(item, previous);
  return outcome === 'won';
}

/**
 * The lifetime of an item that `writeUnreachable` writes. After the item is removed, the next pass to which the cluster does not
 * answer writes it again.
 */
const KEPT_MS = 24 * 60 * 60_000;

/**
 * Records in `#fleet/<stack>/<loop>/<cluster>` that the cluster did not answer. The cluster's run record shows whether it has
 * answered since.
 */
export async function writeUnreachable(
  table: KeyValueTable,
  { stack, loop, cluster, nowMs }: { stack: string; loop: Loop; cluster: string; nowMs: number },
): Promise<void> {
  const key = `${fleetPrefix(stack, loop)}${cluster}`;
  await table.put({ cluster: FLEET, key, value: null, schema: SCHEMA, expiresAtMs: nowMs + KEPT_MS }, undefined);
}
