import { expect, test } from '@jest/globals';
import { guaranteedUpdate } from '../../lib/table/guaranteed-update.ts';
import type { Item, KeyValueTable, TableValue, WriteResult } from '../../lib/table/key-value-table.ts';
import { changesInTurn, Turns } from '../../lib/table/turns.ts';
import { AT_ONCE } from '../support/at-once.ts';
import { memoryTable } from '../support/memory-table.ts';

const CLUSTER = 'c';
const KEY = 'k';

async function write(table: KeyValueTable, value: TableValue): Promise<void> {
  await table.put({ cluster: CLUSTER, key: KEY, value, schema: 1 }, await table.get(CLUSTER, KEY));
}

/** Returns a table. For each put, it calls `interfere` with the number of the put and a function that makes the put. */
function interfered(
  table: KeyValueTable,
  interfere: (put: number, attempt: () => Promise<WriteResult>) => Promise<WriteResult>,
): { table: KeyValueTable; puts: () => number } {
  let puts = 0;
  return {
    puts: () => puts,
    table: {
      ...table,
      put: (content, previous) => {
        puts += 1;
        return interfere(puts, () => table.put(content, previous));
      },
    },
  };
}

function countingGets(inner: KeyValueTable) {
  let gets = 0;
  const get: KeyValueTable['get'] = (...of) => {
    gets += 1;
    return inner.get(...of);
  };
  return { table: { ...inner, get }, gets: () => gets };
}

const increment = (current: Item | undefined) => {
  const value = Number(current?.value ?? 0) + 1;
  return { write: { value, schema: 1 }, result: value };
};

test('if another writer changes the item, guaranteedUpdate computes the change again from the new value, and discards the earlier result', async () => {
  const table = memoryTable();
  const { table: contended, puts } = interfered(table, async (put, attempt) => {
    if (put <= 2) await write(table, put * 10);
    return attempt();
  });
  expect(await guaranteedUpdate(contended, CLUSTER, KEY, increment, AT_ONCE)).toBe(21);
  expect(await table.get(CLUSTER, KEY)).toMatchObject({ value: 21 });
  expect(puts()).toBe(3);
});

test('guaranteedUpdate writes nothing if the new value equals the stored value', async () => {
  const table = memoryTable();
  await write(table, { bytes: new Uint8Array([1]), at: { x: 1 } });
  const before = await table.get(CLUSTER, KEY);
  const value = { at: { x: 1, y: undefined }, bytes: new Uint8Array([1]) };
  const same = { write: { value, schema: 1 }, result: 'r' };
  expect(await guaranteedUpdate(table, CLUSTER, KEY, () => same, AT_ONCE)).toBe('r');
  expect(await table.get(CLUSTER, KEY)).toEqual(before);
});

test.each([
  ['schema', { value: 1, schema: 2 }],
  ['expiry', { value: 1, schema: 1, expiresAtMs: 5 }],
])('guaranteedUpdate writes an item even if only the %s of the item changes', async (_, content) => {
  const table = memoryTable();
  await write(table, 1);
  await guaranteedUpdate(table, CLUSTER, KEY, () => ({ write: content, result: undefined }), AT_ONCE);
  expect(await table.get(CLUSTER, KEY)).toMatchObject({ ...content, version: 2 });
});

test('guaranteedUpdate waits only between attempts, reads the item after each wait, and throws an error with the code Contended after the last attempt', async () => {
  const table = memoryTable();
  const waits: number[] = [];
  const wait = async (attempt: number) => {
    waits.push(attempt);
  };
  const { table: contended, puts } = interfered(table, async (put, attempt) => {
    await write(table, put * 10);
    return attempt();
  });
  const { table: counted, gets } = countingGets(contended);
  await expect(guaranteedUpdate(counted, CLUSTER, KEY, increment, { wait, attempts: 4 })).rejects.toMatchObject({
    name: 'TableError',
    code: 'Contended',
    message: expect.stringContaining('c/k'),
  });
  expect([puts(), gets()]).toEqual([4, 4]);
  expect(waits).toEqual([0, 1, 2]);
});

/** Returns a table with the item 1, options with that item as the caller read it, and a function that counts later gets. */
async function recentlyRead() {
  const table = memoryTable();
  await write(table, 1);
  const recent = { item: await table.get(CLUSTER, KEY) };
  const wait = () => Promise.reject(new Error('expected no wait'));
  return { ...countingGets(table), options: { recent, wait }, inner: table };
}

test('guaranteedUpdate does not read an item that the table returned with the refusal of a write', async () => {
  const { table, options, gets, inner } = await recentlyRead();
  await write(inner, 10);
  expect(await guaranteedUpdate(table, CLUSTER, KEY, increment, options)).toBe(11);
  expect(gets()).toBe(0);
});

test('if the caller decides to keep an item that was read earlier, guaranteedUpdate reads the item again and repeats the decision', async () => {
  const { table, options, inner } = await recentlyRead();
  await write(inner, 10);
  const change = (current: Item | undefined) => ({ keep: `there is ${JSON.stringify(current?.value)}` });
  expect(await guaranteedUpdate(table, CLUSTER, KEY, change, options)).toBe('there is 10');
});

test('guaranteedUpdate never repeats a write with an unclear outcome', async () => {
  const inner = memoryTable();
  const { table, puts } = interfered(inner, async (_, attempt) => {
    await attempt();
    return { outcome: 'unclear' };
  });
  await expect(guaranteedUpdate(table, CLUSTER, KEY, increment, AT_ONCE)).rejects.toMatchObject({
    code: 'Contended',
    message: expect.stringContaining('the next pass reads it again'),
  });
  expect(puts()).toBe(1);
  expect(await inner.get(CLUSTER, KEY)).toMatchObject({ value: 1 });
});

/** Returns work that adds its name to `begun` when it begins, and the functions that end the work. */
function notedWork(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = () => {
    begun.push(name);
    return promise;
  };
  return { work, resolve, reject };
}

test('pieces of work with the same key run one after the other, each after the previous one has ended or failed', async () => {
  const begun: string[] = [];
  const turns = new Turns();
  const [first, second, third] = ['first', 'second', 'third'].map((name) => notedWork(begun, name));
  const { signal } = new AbortController();
  const results = [first, second, third].map((each) => turns.take('key', signal, each?.work ?? fail));
  const settled = Promise.allSettled(results);
  await turns.take('other key', signal, async () => begun.push('other'));
  expect(begun).toEqual(['first', 'other']);
  first?.reject(new Error('lost'));
  await expect(results[0]).rejects.toThrow('lost');
  second?.resolve('done');
  expect(await results[1]).toBe('done');
  third?.resolve('done, too');
  await settled;
  expect(begun).toEqual(['first', 'other', 'second', 'third']);
});

test('if work that never ends is aborted by its signal, the next work with the same key begins', async () => {
  const turns = new Turns();
  const stuck = new AbortController();
  void turns.take('key', stuck.signal, () => new Promise(() => {}));
  const next = turns.take('key', new AbortController().signal, async () => 'done');
  stuck.abort();
  expect(await next).toBe('done');
});

test('the wait after an attempt is calculated from the duration of the attempt, without the time in the queue', async () => {
  const turns = new Turns();
  const { signal } = new AbortController();
  const clock = { nowMs: 0 };
  const tookMs: number[] = [];
  const wait = async (_: number, took: number) => void tookMs.push(took);
  const { update, retries } = changesInTurn({ turns, signal, nowMs: () => clock.nowMs, wait });
  const other = notedWork([], 'other');
  void turns.take('key', signal, other.work);
  const change = update.inTurn('key', async () => {
    clock.nowMs += 10;
    await update.wait(0);
    clock.nowMs += 20;
    await update.wait(1);
  });
  clock.nowMs = 5_000;
  other.resolve('done');
  await change;
  expect(tookMs).toEqual([10, 20]);
  expect(retries()).toBe(2);
});

function fail(): never {
  throw new Error('expected work');
}
