import type { KeyValueTable } from '../table/key-value-table.ts';
import { type DoctorLine, fail, ok } from './line.ts';

/** No cluster can have this name. */
const PARTITION = '#doctor';
const KEY = 'probe';
const KEPT_MS = 60 * 60_000;

/** Writes, reads and deletes an item of its own: all that the functions do to the table. */
export async function lookAtTable(table: KeyValueTable, nowMs: number): Promise<readonly DoctorLine[]> {
  const before = await table.get(PARTITION, KEY);
  const content = { cluster: PARTITION, key: KEY, value: { atMs: nowMs }, schema: 1, expiresAtMs: nowMs + KEPT_MS };
  const written = await table.put(content, before);
  // Another doctor was faster: that proves the table too.
  if (written.outcome !== 'won') return [ok('table', 'reads and writes; another doctor is looking at the same time')];
  const listed = await table.list(PARTITION, KEY);
  const deleted = await table.delete(written.item);
  if (listed.length === 1 || deleted.outcome !== 'won') return [ok('table', 'reads, lists, writes and deletes')];
  const fix = 'TABLE_NAME must be a table of DynamoDB itself, not a global replica or a cache of one';
  return [fail('table', `what was written is not listed: ${listed.length} items instead of 1`, fix)];
}
