import { AllocatorError } from '../allocator/errors.ts';
import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import type { KeyValueTable } from './key-value-table.ts';
import { RANGE_KEYS, type RangeKey } from './ranges.ts';
import { lastSuccessOf } from './run-records.ts';

/** How old the last repair of a range may be, in intervals of its loop. */
const INTERVALS = 3;

/**
 * Returns why nothing is to be allocated from ranges whose repair has not succeeded within its last three intervals. A
 * restored table is older than its cluster, and so is its run record: it stays closed until a pass has read the Services.
 * @throws TableError
 */
export async function refusalOfUnrepaired(
  table: KeyValueTable,
  { name, intervalSeconds }: Pick<ClusterSpec, 'name' | 'intervalSeconds'>,
  keys: readonly RangeKey[],
  nowMs: number,
): Promise<AllocatorError | undefined> {
  const loops = new Set(
    keys.map((key): Loop => (key === RANGE_KEYS.nodePorts ? 'node-port-repair' : 'cluster-ip-repair')),
  );
  const refusals = await Promise.all(
    [...loops].map(async (loop) => {
      const lastMs = await lastSuccessOf(table, name, loop);
      const longestMs = INTERVALS * intervalSeconds[loop] * 1000;
      // A record of the future comes from a clock that is wrong, and proves nothing.
      const isRecent = lastMs !== undefined && Math.abs(nowMs - lastMs) <= longestMs;
      return isRecent ? undefined : unrepaired(name, loop, lastMs);
    }),
  );
  return refusals.find((refusal) => refusal !== undefined);
}

function unrepaired(cluster: string, loop: Loop, lastMs: number | undefined): AllocatorError {
  const last = lastMs === undefined ? 'none is recorded' : `the last one began at ${new Date(lastMs).toISOString()}`;
  return new AllocatorError(
    'NotReady',
    `no pass of ${loop} has succeeded within its last ${INTERVALS} intervals (${last}), so the table may not know all Services: wait for the next pass, or run "kbctl repair ${loop.replace('-repair', '')} ${cluster}"`,
  );
}
