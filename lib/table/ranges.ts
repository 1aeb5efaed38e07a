import * as z from 'zod/mini';
import { popCount, subtract, trimmed } from '../allocator/snapshot-bytes.ts';
import type { Hold } from '../range/hold.ts';
import type { LeakStrikes, StoredRange, Unclaimed } from '../range/stored-range.ts';
import { count } from '../spec/shapes.ts';
import type { RangeKey } from '../spec/spec-ranges.ts';
import { defined } from '../util/values.ts';
import { changesNothing } from './guaranteed-update.ts';
import {
  type Item,
  type KeyValueTable,
  MOST_ITEM_BYTES,
  type NewItem,
  type TableValue,
  type WriteResult,
} from './key-value-table.ts';
import { binary, decodeItem, plainValue, storedSize } from './stored-item.ts';

/** Schema 2 added holds. `given` (the unclaimed items) needed no new schema, because older versions may safely drop it. */
const SCHEMA = 2;

export interface ReadRange {
  readonly stored: StoredRange;
  readonly item: Item;
}

/** Reads a range; `undefined` if no pass has saved it yet. @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readRange(table: KeyValueTable, cluster: string, key: RangeKey): Promise<ReadRange | undefined> {
  const item = await table.get(cluster, key);
  return item && { stored: decodeRange(item), item };
}

/**
 * Saves a range if its table item is still `previous`; otherwise returns `lost`, where upstream's `CreateOrUpdate`
 * (`pkg/registry/core/service/allocator/storage/storage.go`) returns a Conflict. A save without a change writes nothing and
 * returns `won`.
 */
export async function saveRange(
  table: KeyValueTable,
  cluster: string,
  key: RangeKey,
  stored: StoredRange,
  previous: Item | undefined,
): Promise<WriteResult> {
  const content = { ...rangeContent(stored), cluster, key };
  if (previous !== undefined && changesNothing(content, previous)) return { outcome: 'won', item: previous };
  return table.put(content, previous);
}

export function rangeContent(stored: StoredRange): Omit<NewItem, 'cluster' | 'key'> {
  const { range, data, allocator, generation, holds, unclaimed } = stored;
  const given = unclaimedValue(unclaimed);
  const room = MOST_ITEM_BYTES - OTHER_BYTES - data.length - sizeOfHolds(holds) - storedSize(given);
  const { once, twice, last } = strikesThatFit(stored.strikes, room);
  return {
    schema: SCHEMA,
    value: {
      range,
      data,
      allocator,
      generation,
      strikes: { once, twice, last: last && { ...last } },
      holds: holds.map(plainValue),
      ...(unclaimed.length > 0 && { given }),
    },
  };
}

/** The number of bytes that are reserved for all parts of the table item except bitmaps, holds and unclaimed items. */
const OTHER_BYTES = 4 * 1024;
/** The maximum size of all holds of a range: one hold for each address of a /24 range fits. DynamoDB charges by size. */
export const MOST_HOLD_BYTES = 64 * 1024;

/**
 * Returns the strikes that fit into the rest of the table item. If not all strikes fit (in a /12 range that is full of leaks),
 * drops strikes of the highest addresses, first from `once`, because the next strike frees an item in `twice`. A later pass
 * records the dropped strikes again.
 */
function strikesThatFit({ once, twice, last }: LeakStrikes, room: number): LeakStrikes {
  const fitting = (bits: Uint8Array, bytes: number) =>
    bits.length <= bytes ? bits : trimmed(bits.subarray(bits.length - Math.max(0, bytes)));
  const most = fitting(twice, room);
  return { twice: most, once: fitting(once, room - most.length), ...defined({ last }) };
}

export function sizeOfHolds(holds: readonly Hold[]): number {
  return storedSize(holds.map(plainValue));
}

export function isRangeKey(key: string): boolean {
  return key.startsWith('ranges/');
}

/** Describes a write of a range: `save ranges/serviceips: 12 taken in 10.0.0.0/24, 1 freed`. */
export function describeRangeWrite(item: Item, previous: Item | undefined): string {
  const { range, data, strikes, holds } = decodeRange(item);
  const before = previous && decodeRange(previous);
  const freed = before?.range === range ? popCount(subtract(before.data, data)) : 0;
  const figures = [
    [popCount(data), `taken in ${range}`],
    [holds.reduce((sum, { items }) => sum + items.length, 0), 'held'],
    [freed, 'freed'],
    [popCount(strikes.once) + popCount(strikes.twice), 'without a Service'],
  ] as const;
  const shown = figures.filter(([figure], position) => figure > 0 || position === 0);
  return `save ${item.key}: ${shown.map((words) => words.join(' ')).join(', ')}`;
}

export const holdShape = z.object({
  items: z.array(z.string()).check(z.minLength(1, 'is empty')),
  owner: z.string(),
  takenUpBy: z.enum(['any', 'owner']),
  untilMs: z.exactOptional(z.number()),
  requestId: z.exactOptional(z.string()),
});

const rangeShape = z.object({
  range: z.string(),
  data: binary,
  allocator: z.enum(['table', 'apiserver']),
  generation: count,
  strikes: z.object({
    once: binary,
    twice: binary,
    last: z.exactOptional(
      z.object({ atMs: z.number(), passId: z.string(), controlPlane: z.exactOptional(z.string()) }),
    ),
  }),
  holds: z.array(holdShape),
  given: z.exactOptional(z.record(z.string(), z.string())),
});
const shapeBefore = z.extend(rangeShape, { holds: z._default(rangeShape.shape.holds, []) });

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRange(item: Item): StoredRange {
  const { given, ...stored } = decodeItem(item, item.schema < SCHEMA ? shapeBefore : rangeShape, SCHEMA);
  return { ...stored, unclaimed: unclaimedIn(given ?? {}) };
}

/**
 * Returns the stored form of unclaimed items, which is short. Each namespace has one text with a line for each Service: the
 * name, the number of reviews, the bits of `first`, and the bits of `later`.
 */
function unclaimedValue(unclaimed: readonly Unclaimed[]): { readonly [namespace: string]: TableValue } {
  const byNamespace = [...Map.groupBy(unclaimed, ({ namespace }) => namespace)];
  return Object.fromEntries(byNamespace.map(([namespace, each]) => [namespace, each.map(lineOf).join('\n')]));
}

/** Decodes unclaimed items. Drops invalid lines, which is safe. */
function unclaimedIn(given: Readonly<Record<string, string>>): readonly Unclaimed[] {
  return Object.entries(given).flatMap(([namespace, text]) =>
    text.split('\n').flatMap((line) => unclaimedLine(namespace, line)),
  );
}

function lineOf({ name, reviews, first, later }: Unclaimed): string {
  return [name, reviews, first.join(), later.join()].join(' ');
}

function unclaimedLine(namespace: string, line: string): readonly Unclaimed[] {
  const [, name, reviews, first = '', later = ''] = /^(\S+) (\d+) ([\d,]*) ([\d,]*)$/.exec(line) ?? [];
  if (name === undefined) return [];
  return [{ namespace, name, reviews: Number(reviews), first: bitsIn(first), later: bitsIn(later) }];
}

function bitsIn(text: string): readonly number[] {
  return text === '' ? [] : text.split(',').map(Number);
}
