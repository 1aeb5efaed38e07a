import { type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import type { ItemPlace } from './item-place.ts';
import type { ItemFacts } from './item-status.ts';

/** What the table knows of the range of an item. @throws TableError of what cannot be read. */
export async function readItemFacts(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  place: ItemPlace,
  nowMs: number,
): Promise<ItemFacts> {
  const { name } = cluster.spec;
  const [pausedAll, run, read] = await Promise.all([
    readPauseOfAll(table),
    readRunRecord(table, name, place.loop),
    readRange(table, name, place.key),
  ]);
  return {
    cluster,
    place,
    paused: [cluster.paused, pausedAll].some((pause) => pause !== undefined && pause.untilMs > nowMs),
    ...(read && { saved: { stored: read.stored, savedAtMs: read.item.updatedAtMs } }),
    ...(run && { record: run.record }),
  };
}
