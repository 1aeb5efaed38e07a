import type { Loop } from '../cluster/cluster-spec.ts';
import type { KeyValueTable } from './key-value-table.ts';
import { FLEET, fleetPrefix } from './suspects.ts';

const SCHEMA = 1;
/** The next pass without an answer writes it again. */
const KEPT_MS = 24 * 60 * 60_000;

/**
 * Writes `#fleet/<stack>/<loop>/<cluster>`: the cluster gave no answer to a pass of the loop. The item stays when it
 * answers again; the run record has the present state.
 */
export async function writeUnreachable(
  table: KeyValueTable,
  { stack, loop, cluster, nowMs }: { stack: string; loop: Loop; cluster: string; nowMs: number },
): Promise<void> {
  const key = `${fleetPrefix(stack, loop)}${cluster}`;
  await table.put({ cluster: FLEET, key, value: null, schema: SCHEMA, expiresAtMs: nowMs + KEPT_MS }, undefined);
}
