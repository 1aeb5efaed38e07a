import { expect, test } from '@jest/globals';
import type { Item } from '../../lib/table/key-value-table.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
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

test('a run record contains only the first twenty findings', async () => {
  const findings = Array.from({ length: 60 }, (_, n) => ({ type: 'leak' as const, message: `leak ${n}` }));
  const kept = (await written(aRunRecord(0, { findings })))?.findings;
  expect(kept).toEqual(findings.slice(0, 20));
});

test('a run record cuts off long messages, but not within a character', async () => {
  const message = `${'x'.repeat(498)}🜲 and more`;
  const findings = [{ type: 'other' as const, message }];
  const record = await written(aRunRecord(0, { findings, error: { code: 'x', message } }));
  expect(record?.findings[0]?.message).toBe(`${'x'.repeat(498)}\u{fffd}…`);
  expect(record?.error?.message).toHaveLength(500);
});

test('a run record does not cut off a message of the maximum length', async () => {
  const message = 'x'.repeat(500);
  expect((await written(aRunRecord(0, { error: { code: 'x', message } })))?.error?.message).toBe(message);
});
