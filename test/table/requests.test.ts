import { describe, expect, test } from '@jest/globals';
import { isKept, type RequestRecord, readRequest, writeRequest } from '../../lib/table/requests.ts';
import { won } from '../contract/key-value-table.ts';
import { memoryTable } from '../support/memory-table.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const at = (nowMs: number) => ({ cluster: 'c', id: 'r1', nowMs });

describe('The record of a request', () => {
  test.each<RequestRecord>([
    { fingerprint: 'f', state: 'begun' },
    { fingerprint: 'f', state: 'begun', hold: { owner: 'a', takenUpBy: 'any', untilMs: 5 } },
    {
      fingerprint: 'f',
      state: 'begun',
      hold: { owner: 'a', takenUpBy: 'any' },
      takesUp: {
        serviceips: [{ owner: 'b', takenUpBy: 'owner', untilMs: 5, requestId: 'r0', items: ['10.0.0.1', '10.0.0.2'] }],
        servicenodeports: [],
      },
    },
    { fingerprint: 'f', state: 'rollingBack', hold: { owner: 'a', takenUpBy: 'owner' }, answer: '{}' },
    { fingerprint: 'f', state: 'done', answer: '{}' },
  ])('the record of a request is read back unchanged: %j', async (record) => {
    const table = memoryTable();
    expect(await readRequest(table, 'c', 'r1')).toBeUndefined();
    const item = won(await writeRequest(table, at(0), record, undefined));
    expect(item.key).toBe('requests/r1');
    expect(await readRequest(table, 'c', 'r1')).toEqual({ record, item });
  });

  test('a record is valid for a day after its last step, and only a caller that has read it overwrites it', async () => {
    const table = memoryTable();
    const begun = { fingerprint: 'f', state: 'begun' } as const;
    const first = won(await writeRequest(table, at(10), begun, undefined));
    expect(await writeRequest(table, at(10), begun, undefined)).toEqual({ outcome: 'lost' });
    const done = { fingerprint: 'f', state: 'done', answer: '{}' } as const;
    const item = won(await writeRequest(table, at(20), done, first));
    expect(await writeRequest(table, at(20), done, first)).toEqual({ outcome: 'lost' });
    const read = { record: done, item };
    expect([19, 20].map((ms) => isKept(read, DAY_MS + ms))).toEqual([true, false]);
  });
});
