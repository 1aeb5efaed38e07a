import type { FleetStatus } from '../../lib/status/cluster-status.ts';
import { readFleetStatus } from '../../lib/status/read-status.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';

/** The page of more clusters has no room for the maps of all: those are read when the page of one is opened. */
const MOST_WITH_MAPS = 50;

/** All clusters for a page that is read anew as long as somebody looks at it. */
export function readForLivePage(table: KeyValueTable, tableName: string, nowMs: number): Promise<FleetStatus> {
  return readFleetStatus(table, tableName, nowMs, {
    details: (clusters) => (clusters > MOST_WITH_MAPS ? 'brief' : 'full'),
  });
}
