import { expect, test } from '@jest/globals';
import type { FindingType } from '../../lib/cluster/finding.ts';
import type { Item } from '../../lib/table/key-value-table.ts';
import {
  lastSuccessOf,
  listRunRecords,
  type RunRecord,
  readRunRecord,
  writeRunRecord,
} from '../../lib/table/run-records.ts';
import { won } from '../contract/key-value-table.ts';
import { memoryTable } from '../support/memory-table.ts';
import { aRunRecord } from '../support/run-records.ts';

const LOOP = 'cluster-ip-repair';

async function written(record: RunRecord): Promise<RunRecord | undefined> {
  const table = memoryTable();
  won(await writeRunRecord(table, 'c', LOOP, record, undefined));
  return (await readRunRecord(table, 'c', LOOP))?.record;
}

test('a run record contains the ids of only its last eight writes, so that the record stays small', async () => {
  const table = memoryTable();
  let item: Item | undefined;
  for (let n = 0; n < 10; n++) item = won(await writeRunRecord(table, 'c', LOOP, aRunRecord(0), item));
  expect(item?.earlierWrites).toHaveLength(8 * 6);
});

test('a run record lists findings that require action first, and at least one finding of each type', async () => {
  const of = (type: FindingType, count: number) => Array.from({ length: count }, () => ({ type, message: type }));
  const findings = [...of('leak', 40), ...of('duplicate', 40), ...of('oddProbe', 1)];
  const kept = (await written(aRunRecord(0, { findings })))?.findings;
  expect(kept?.map(({ type }) => type)).toEqual([...Array(18).fill('duplicate'), 'leak', 'oddProbe']);
});

test('if a run record omits lines of its list of writes or of changes, the last line of that list contains their number', async () => {
  const lines = Array.from({ length: 101 }, (_, n) => `line ${n}`);
  const record = await written(aRunRecord(0, { wouldWrite: lines, lastChange: { atMs: 1, changes: lines } }));
  expect(record?.wouldWrite?.at(-1)).toBe('make 81 more writes');
  expect(record?.lastChange?.changes.at(-1)).toBe('made 81 more changes');
});

test('a run record cuts off long messages, but not within a character', async () => {
  const message = `${'x'.repeat(498)}🜲 and more`;
  const findings = [{ type: 'other' as const, message }];
  const record = await written(aRunRecord(0, { findings, error: { code: 'x', message, server: message } }));
  expect(record?.findings[0]?.message).toBe(`${'x'.repeat(498)}\u{fffd}…`);
  expect(record?.error?.message).toHaveLength(500);
  expect(record?.error?.server).toHaveLength(400);
  const longest = 'x'.repeat(500);
  expect((await written(aRunRecord(0, { error: { code: 'x', message: longest } })))?.error?.message).toBe(longest);
});

test('the time of the last success is read although other fields do not parse, and records of unknown loops are ignored', async () => {
  const table = memoryTable();
  won(await table.put({ cluster: 'c', key: `runs/${LOOP}`, value: { lastSuccessAtMs: 5 }, schema: 1 }, undefined));
  expect(await lastSuccessOf(table, 'c', LOOP)).toBe(5);
  won(await table.put({ cluster: 'd', key: 'runs/later', value: {}, schema: 9 }, undefined));
  expect(await listRunRecords(table, 'd')).toEqual({});
});
