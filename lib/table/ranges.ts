import type { StoredRange } from '../allocator/range-allocator.ts';
import { changesNothing } from './guaranteed-update.ts';
import { fieldsOf } from './item-fields.ts';
import type { Item, KeyValueTable, NewItem, WriteResult } from './key-value-table.ts';

/** As in etcd, without the prefix: the primary cluster IPs, the secondary ones, the node ports. */
export const RANGE_KEYS = {
  primary: 'ranges/serviceips',
  secondary: 'ranges/secondaryserviceips',
  nodePorts: 'ranges/servicenodeports',
} as const;
export type RangeKey = (typeof RANGE_KEYS)[keyof typeof RANGE_KEYS];

const SCHEMA = 1;

/** A range and the item that holds it: what a save is conditional on. */
export interface ReadRange {
  readonly stored: StoredRange;
  readonly item: Item;
}

/**
 * `undefined`: no pass has ever saved this range.
 * @throws TableError `SchemaTooNew`, `Corrupt`; the item is left as it is.
 */
export async function readRange(table: KeyValueTable, cluster: string, key: RangeKey): Promise<ReadRange | undefined> {
  const item = await table.get(cluster, key);
  return item && { stored: decodeRange(item), item };
}

/**
 * Saves a range over exactly the item that was read, `undefined` if there was none. This is the original's
 * `CreateOrUpdate` (`pkg/registry/core/service/allocator/storage/storage.go`), with `lost` for its Conflict:
 *
 * | original | here |
 * | --- | --- |
 * | `the provided resource version does not match` | `previous` was written over: `lost` |
 * | `another caller has already initialized the resource` | `previous` is `undefined` and there is one: `lost` |
 * | stored object gone, snapshot has a version: made anew | `lost`: what removed it knew something that this pass did not |
 *
 * What would change nothing is not written and counts as won.
 */
export async function saveRange(
  table: KeyValueTable,
  cluster: string,
  key: RangeKey,
  stored: StoredRange,
  previous: Item | undefined,
): Promise<WriteResult<Item>> {
  const content = { ...rangeContent(stored), cluster, key };
  if (previous !== undefined && changesNothing(content, previous)) return { outcome: 'won', item: previous };
  return table.put(content, previous);
}

export function rangeContent(stored: StoredRange): Omit<NewItem, 'cluster' | 'key'> {
  const { range, data, allocator, generation, strikes } = stored;
  const { once, twice, last } = strikes;
  return {
    schema: SCHEMA,
    value: { range, data, allocator, generation, strikes: { once, twice, last: last && { ...last } } },
  };
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRange(item: Item): StoredRange {
  const fields = fieldsOf(item, SCHEMA);
  const strikes = fields.fields('strikes');
  const last = strikes.optionalFields('last');
  return {
    range: fields.text('range'),
    data: fields.bytes('data'),
    allocator: fields.oneOf('allocator', ['table', 'apiserver']),
    generation: fields.count('generation'),
    strikes: {
      once: strikes.bytes('once'),
      twice: strikes.bytes('twice'),
      ...(last !== undefined && { last: { atMs: last.number('atMs'), passId: last.text('passId') } }),
    },
  };
}
