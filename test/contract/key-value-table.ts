import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Item, KeyValueTable, TableError, TableValue, WriteResult } from '../../lib/table/key-value-table.ts';

export interface TableUnderTest {
  /** Opens a view of the same table. Its clock stands at `NOW_MS`, and the signal ends its calls. */
  readonly open: (deadline?: AbortSignal) => KeyValueTable;
  /** Deletes an item, as an operator or DynamoDB's TTL does. */
  readonly remove: (cluster: string, key: string) => Promise<unknown>;
  /** What differs from DynamoDB. Default: nothing. */
  readonly oddities?: readonly TableOddity[];
}

export type TableOddity = 'refuses items from 405,000 bytes' | 'counts the characters of a text, not its bytes';

export const NOW_MS = Date.UTC(2026, 10, 21, 3, 0, 0, 123);

let clusters = 0;

/** Returns a partition that no other test writes to. */
export function newCluster(): string {
  clusters += 1;
  return `cluster-${clusters}`;
}

export function won(result: WriteResult): Item {
  if (result.outcome !== 'won') throw new Error(`expected the write to be won, and it was ${result.outcome}`);
  return result.item;
}

/** Expects that a write was lost to this item. A table need not return the item. */
function expectLost(result: WriteResult, item: Item | undefined): void {
  expect(result.outcome).toBe('lost');
  if (result.outcome === 'lost' && result.current !== undefined) expect(result.current).toEqual(item);
}

/** Defines the tests that every implementation of `KeyValueTable` passes. */
export function describeKeyValueTable(name: string, { open, remove, oddities = [] }: TableUnderTest): void {
  describe(name, () => {
    let cluster: string;

    beforeEach(() => {
      cluster = newCluster();
    });

    const tryPut = (value: TableValue, previous: Item | undefined, key = 'a') =>
      open().put({ cluster, key, value, schema: 1 }, previous);
    const put = async (value: TableValue, previous?: Item, key?: string) => won(await tryPut(value, previous, key));

    test('a put creates a missing item with version 1, the time of the write and a write id', async () => {
      const written = await put({ n: 1 });
      const writeId = expect.stringMatching(/./);
      const content = { cluster, key: 'a', value: { n: 1 }, schema: 1 };
      expect(written).toEqual({ ...content, writeId, version: 1, updatedAtMs: NOW_MS });
      expect(await open().get(cluster, 'a')).toEqual(written);
    });

    test('a put that expects no item has the outcome lost if the item exists', async () => {
      const first = await put(1);
      const result = await tryPut(2, undefined);
      expectLost(result, first);
      expect(await open().get(cluster, 'a')).toEqual(first);
    });

    test('a put replaces the item that was read, increases its version by one, and gives it a new write id', async () => {
      const first = await put(1);
      const second = await put(2, first);
      expect(second.version).toBe(2);
      expect(second.writeId).not.toBe(first.writeId);
      expect(await open().get(cluster, 'a')).toEqual(second);
    });

    test('a table item keeps six bytes of each of its last 64 previous write ids, with the latest one at the end', async () => {
      let item = await put(0);
      expect(item).not.toHaveProperty('earlierWrites');
      let before = '';
      for (let count = 1; count <= 66; count++) {
        item = await put(count, item);
        const traces = Buffer.from(item.earlierWrites ?? []).toString('hex');
        expect(traces).toHaveLength(Math.min(count, 64) * 12);
        expect(traces.slice(0, -12)).toBe(before.slice(count > 64 ? 12 : 0));
        before = traces;
      }
      expect(await open().get(cluster, 'a')).toEqual(item);
    });

    const changes: [string, (read: Item) => Promise<unknown>][] = [
      ['was written', (read) => put(2, read)],
      ['was deleted', () => remove(cluster, 'a')],
      ['was deleted and created again', () => remove(cluster, 'a').then(() => put(1))],
    ];

    test.each(changes)('a put has the outcome lost if the item %s since the read', async (_, change) => {
      const read = await put(1);
      await change(read);
      const current = await open().get(cluster, 'a');
      expect(current).not.toEqual(read);
      expectLost(await tryPut(3, read), current);
      expect(await open().get(cluster, 'a')).toEqual(current);
    });

    test.each(['change', 'create'])('of 50 simultaneous puts that %s one item, exactly one succeeds', async (verb) => {
      const first = verb === 'change' ? await put(-1) : undefined;
      const results = await Promise.all(Array.from({ length: 50 }, (_, value) => tryPut(value, first)));
      const winners = results.filter(({ outcome }) => outcome === 'won');
      expect(winners).toHaveLength(1);
      expect(results.filter(({ outcome }) => outcome === 'lost')).toHaveLength(49);
      expect(await open().get(cluster, 'a')).toEqual(winners[0] && won(winners[0]));
    });

    test('a put stores the expiry, an expired item can still be read, and a put without an expiry removes the expiry', async () => {
      const content = { cluster, key: 'a', value: 1, schema: 1 };
      const expiresAtMs = NOW_MS - 1;
      const written = won(await open().put({ ...content, expiresAtMs }, undefined));
      expect(written.expiresAtMs).toBe(expiresAtMs);
      expect(await open().get(cluster, 'a')).toEqual(written);
      expect(await open().list(cluster, '')).toEqual([written]);
      won(await open().put(content, written));
      expect(await open().get(cluster, 'a')).not.toHaveProperty('expiresAtMs');
    });

    const [LESS, CHARACTERS] = [
      'refuses items from 405,000 bytes',
      'counts the characters of a text, not its bytes',
    ] as const;
    test.each<{ what: string; value: TableValue; isStored: boolean; unless?: TableOddity }>([
      { what: '409,000 bytes succeeds', value: new Uint8Array(409_000), isStored: true, unless: LESS },
      { what: '204,500 two-byte characters succeeds', value: 'é'.repeat(204_500), isStored: true, unless: LESS },
      { what: '409,600 bytes fails', value: new Uint8Array(409_600), isStored: false },
      { what: '204,800 two-byte characters fails', value: 'é'.repeat(204_800), isStored: false, unless: CHARACTERS },
    ])('a put of a value of $what', async ({ value, isStored, unless }) => {
      const isOdd = unless !== undefined && oddities.includes(unless);
      const result = await tryPut(value, undefined).catch(({ code }: TableError) => ({ outcome: code }));
      expect(result.outcome).toBe(isStored === isOdd ? 'ItemTooLarge' : 'won');
      expect((await open().get(cluster, 'a')) !== undefined).toBe(isStored !== isOdd);
    });

    test.each([Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60])('a put refuses %p, an inexact number', async (value) => {
      await expect(put({ value })).rejects.toMatchObject({ code: 'Unexpected' });
      expect(await open().get(cluster, 'a')).toBeUndefined();
    });

    test.each<[string, TableValue]>([
      ['null', null],
      ['true', true],
      ['an empty text', ''],
      ['a text with characters of several Unicode planes', 'größer 漢字 🜲'],
      ['zero', 0],
      ['a negative fraction', -0.1],
      ['a number of 17 digits', 0.300_000_000_000_000_04],
      ['a number near zero', 1e-120],
      ['the largest safe number', Number.MAX_SAFE_INTEGER],
      ['empty binary', new Uint8Array(0)],
      ['every byte', Uint8Array.from({ length: 256 }, (_, byte) => byte)],
      ['8 KB of binary', new Uint8Array(8192).fill(0xa5)],
      ['an empty list', []],
      ['an empty map', {}],
      ['a deep map', { list: [{ bytes: new Uint8Array([0, 1]) }, [null, false]], name: { of: { it: 'x' } } }],
    ])('a get returns the value %s exactly as a put stored it', async (_, value) => {
      const written = await put(value);
      expect(written.value).toEqual(value);
      expect((await open().get(cluster, 'a'))?.value).toEqual(value);
      expect((await open().list(cluster, ''))[0]?.value).toEqual(value);
    });

    test('a get returns a value without the fields that were undefined in the put', async () => {
      await put({ kept: 1, dropped: undefined, inner: { dropped: undefined } });
      const value = (await open().get(cluster, 'a'))?.value;
      expect(value).toStrictEqual({ kept: 1, inner: {} });
    });

    test('if the caller changes a value after the put, the stored value does not change', async () => {
      const bytes = new Uint8Array([1]);
      await put({ bytes });
      bytes[0] = 2;
      expect((await open().get(cluster, 'a'))?.value).toEqual({ bytes: new Uint8Array([1]) });
    });

    test('a get finds neither a missing item nor an item of another cluster', async () => {
      await put(1);
      expect(await open().get(cluster, 'b')).toBeUndefined();
      expect(await open().get(newCluster(), 'a')).toBeUndefined();
    });

    test('getAll returns the items of several clusters in the order of the keys, and undefined for a missing item', async () => {
      const other = newCluster();
      const [a, b] = [await put(1), await put(2, undefined, 'b')];
      const c = won(await open().put({ cluster: other, key: 'a', value: 3, schema: 1 }, undefined));
      const missing = { cluster, key: 'missing' };
      const read = await open().getAll([c, b, missing, { cluster: newCluster(), key: 'a' }, a]);
      expect(read).toEqual([c, b, undefined, undefined, a]);
    });

    test('getAll returns all items even if they do not fit into one reply', async () => {
      const bytes = new Uint8Array(390 * 1024).fill(1);
      const keys = Array.from({ length: 45 }, (_, index) => ({ cluster, key: `large/${index}` }));
      for (const { key } of keys) await put(bytes, undefined, key);
      expect((await open().getAll(keys)).map((item) => item?.key)).toEqual(keys.map(({ key }) => key));
    });

    const keysOf = async (prefix: string) => (await open().list(cluster, prefix)).map(({ key }) => key);

    test('a list returns keys in byte order, not in numeric or UTF-16 order', async () => {
      const keys = ['10.0.0.2', '10.0.0.10', 'a', 'B', 'é', '\u{ff5e}', '\u{1f732}', '2001:db8::1'];
      for (const key of keys) await put(key, undefined, key);
      const inOrder = ['10.0.0.10', '10.0.0.2', '2001:db8::1', 'B', 'a', 'é', '\u{ff5e}', '\u{1f732}'];
      expect(await keysOf('')).toEqual(inOrder);
    });

    test('a list returns exactly the keys with the prefix', async () => {
      for (const key of ['leases', 'leases.', 'leases/', 'leases/10.0.0.1', 'leases0', 'runs/x'])
        await put(key, undefined, key);
      expect(await keysOf('leases/')).toEqual(['leases/', 'leases/10.0.0.1']);
      expect(await keysOf('nothing/')).toEqual([]);
    });

    test('a list returns all items even if they do not fit into one reply', async () => {
      const keys = Array.from({ length: 12 }, (_, index) => `page/${String(index).padStart(2, '0')}`);
      const bytes = new Uint8Array(250 * 1024).fill(1);
      for (const key of keys) await put({ bytes }, undefined, key);
      expect(await keysOf('page/')).toEqual(keys);
      let [waits, pages] = [0, 0];
      const wait = async () => {
        waits += 1;
      };
      for await (const page of open().pages?.(cluster, 'page/', wait) ?? []) {
        expect(page.length).toBeLessThan(keys.length);
        expect(waits).toBe(pages);
        pages += 1;
      }
      expect(waits).toBe(Math.max(0, pages - 1));
    });

    test('a list returns no items of other clusters', async () => {
      await put(1);
      won(await open().put({ cluster: newCluster(), key: 'b', value: 1, schema: 1 }, undefined));
      expect(await keysOf('')).toEqual(['a']);
    });

    const calls: [string, (table: KeyValueTable, item: Item) => Promise<unknown>][] = [
      ['get', (table, item) => table.get(item.cluster, item.key)],
      ['getAll', (table, item) => table.getAll([item])],
      ['list', (table, item) => table.list(item.cluster, '')],
      ['put', (table, item) => table.put({ ...item, value: 2 }, item)],
    ];

    test.each(calls)('a %s does not start after its deadline', async (_, call) => {
      const item = await put(1);
      const over = AbortSignal.abort(new Error('the pass is over'));
      const expected: Partial<TableError> = { name: 'TableError', code: 'DeadlineExceeded' };
      await expect(call(open(over), item)).rejects.toMatchObject(expected);
      expect(await open().get(item.cluster, 'a')).toEqual(item);
    });
  });
}
