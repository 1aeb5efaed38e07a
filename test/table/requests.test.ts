import { describe, expect, test } from '@jest/globals';
import { isKept, writeRequest } from '../../lib/table/requests.ts';
import { won } from '../contract/key-value-table.ts';
import { memoryTable } from '../support/memory-table.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const at = (nowMs: number) => ({ cluster: 'c', id: 'r1', nowMs });

describe('The record of a request', () => {
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
