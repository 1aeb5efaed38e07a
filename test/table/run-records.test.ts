import { expect, test } from '@jest/globals';
import type { Item } from '../../lib/table/key-value-table.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
import { won } from '../contract/key-value-table.ts';
import { memoryTable } from '../support/memory-table.ts';

const LOOP = 'cluster-ip-repair';

const SUCCEEDED: RunRecord = {
  passId: 'p1',
  startedAtMs: 1_000,
  durationMs: 12.5,
  outcome: 'succeeded',
  mode: 'enforce',
  observed: false,
  counts: { services: 3, allocated: 2 },
  findings: [
    { type: 'leak', message: 'the cluster IP 10.0.0.5 may have leaked: flagging for later clean up' },
    { type: 'duplicate', message: 'taken twice', item: '10.0.0.6', service: 'shop/web' },
  ],
  findingCount: 312,
  failuresInARow: 0,
  lastSuccessAtMs: 1_000,
  events: { 'web.0a1b': { count: 2, lastSeenAtMs: 900, lastWrittenAtMs: 800 } },
  state: { backoff: [1, null] },
};
const { lastSuccessAtMs: _, state: __, findingCount: ___, ...NEVER_SUCCEEDED } = SUCCEEDED;
const FAILED: RunRecord = {
  ...NEVER_SUCCEEDED,
  outcome: 'failed',
  observed: true,
  findings: [],
  error: { code: 'Unavailable', message: 'the API server did not answer' },
  failuresInARow: 4,
  events: {},
};

async function written(record: RunRecord): Promise<RunRecord | undefined> {
  const table = memoryTable();
  won(await writeRunRecord(table, 'c', LOOP, record, undefined));
  return (await readRunRecord(table, 'c', LOOP))?.record;
}

test('a run record contains the ids of only its last eight writes, so that the record stays small', async () => {
  const table = memoryTable();
  let item: Item | undefined;
  for (let n = 0; n < 10; n++) item = won(await writeRunRecord(table, 'c', LOOP, SUCCEEDED, item));
  expect(item?.earlierWrites).toHaveLength(8 * 6);
});

test('a run record contains only the first twenty findings', async () => {
  const findings = Array.from({ length: 60 }, (_, n) => ({ type: 'leak' as const, message: `leak ${n}` }));
  const kept = (await written({ ...SUCCEEDED, findings }))?.findings;
  expect(kept).toEqual(findings.slice(0, 20));
});

test('a run record cuts off long messages, but not within a character', async () => {
  const message = `${'x'.repeat(498)}🜲 and more`;
  const record = await written({ ...FAILED, findings: [{ type: 'other', message }], error: { code: 'x', message } });
  expect(record?.findings[0]?.message).toBe(`${'x'.repeat(498)}\u{fffd}…`);
  expect(record?.error?.message).toHaveLength(500);
});

test('a run record does not cut off a message of the maximum length', async () => {
  const message = 'x'.repeat(500);
  expect((await written({ ...FAILED, error: { code: 'x', message } }))?.error?.message).toBe(message);
});
