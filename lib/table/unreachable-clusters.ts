import type { Loop } from '../cluster/cluster-spec.ts';
import type { KeyValueTable } from './key-value-table.ts';
import { FLEET, fleetPrefix } from './suspects.ts';

const SCHEMA = 1;
/** The next pass without an answer writes it again. */
const KEPT_MS = 24 * 60 * 60_000;

/**
 * Writes `#fleet/<stack>/<loop>/<cluster>`: the API server gave no answer to a pass of the loop. Whether it still gives
 * none is in the run record alone, so the item stays when it answers.
 */
export async function writeUnreachable(
  table: KeyValueTable,
  { stack, loop, cluster, nowMs }: { stack: string; loop: Loop; cluster: string; nowMs: number },
): Promise<void> {
  const key = `${fleetPrefix(stack, loop)}${cluster}`;
  await table.put({ cluster: FLEET, key, value: null, schema: SCHEMA, expiresAtMs: nowMs + KEPT_MS }, undefined);
}
