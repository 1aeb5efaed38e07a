import { expect, test } from '@jest/globals';
import {
  type Accident,
  afterAccident,
  listFleetNotes,
  type Suspect,
  writeSuspect,
  writeUnreachable,
} from '../../lib/table/fleet-notes.ts';
import { memoryTable } from '../support/memory-table.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const HOUR = 60 * 60_000;
const SHARED: Accident = { atMs: NOW, clusters: ['a', 'b'], ofSuspects: false };
const ALONE: Accident = { atMs: NOW, clusters: ['a'], ofSuspects: true };
const SUSPECT: Suspect = { sinceMs: NOW, untilMs: NOW + HOUR, accidents: 1, state: 'proven' };

test('the table item of a suspect is kept until a week after the cluster last ran alone, and is listed together with unreachable clusters', async () => {
  const table = memoryTable();
  const key = { stack: 's', loop: 'node-port-repair', cluster: 'a' } as const;
  await writeUnreachable(table, { ...key, cluster: 'b', nowMs: NOW });
  for (let writes = 0; writes < 10; writes++) {
    const known = (await listFleetNotes(table, 's', 'node-port-repair')).suspects.get('a');
    expect(await writeSuspect(table, key, { ...SUSPECT, accidents: writes }, known?.item)).toBe(true);
  }
  const { unreachable, suspects } = await listFleetNotes(table, 's', 'node-port-repair');
  expect([unreachable, [...suspects.keys()]]).toEqual([['b'], ['a']]);
  const { suspect, item } = suspects.get('a') ?? {};
  expect(suspect).toEqual({ ...SUSPECT, accidents: 9 });
  expect(item).toMatchObject({ schema: 1, expiresAtMs: NOW + HOUR + 7 * 24 * HOUR });
  expect(item?.earlierWrites).toHaveLength(8 * 6);
  expect(await writeSuspect(table, key, SUSPECT, undefined)).toBe(false);
  const [of] = await table.list('#fleet', 's/node-port-repair/b');
  expect(of).toMatchObject({ value: null, schema: 1, expiresAtMs: NOW + 24 * HOUR });
});

test('if the table item of a suspect is corrupt, the item is listed as unreadable, and the other suspects are still listed', async () => {
  const table = memoryTable();
  const key = { stack: 's', loop: 'node-port-repair' } as const;
  await writeSuspect(table, { ...key, cluster: 'a' }, SUSPECT, undefined);
  const corrupt = { cluster: '#fleet', key: 's/node-port-repair/suspects/x', value: { sinceMs: 1 }, schema: 1 };
  await table.put(corrupt, undefined);
  const { suspects, unreadable } = await listFleetNotes(table, 's', 'node-port-repair');
  expect([[...suspects.keys()], [...unreadable.keys()]]).toEqual([['a'], ['x']]);
  const { item } = unreadable.get('x') ?? {};
  expect(await writeSuspect(table, { ...key, cluster: 'x' }, SUSPECT, item)).toBe(true);
  expect([...(await listFleetNotes(table, 's', 'node-port-repair')).suspects.keys()]).toEqual(['a', 'x']);
});

test('a suspect runs alone for an hour after its first accident, and for twice as long after each further accident, up to a day', () => {
  let suspect: Suspect | undefined;
  const hours: number[] = [];
  for (let nowMs = NOW; hours.length < 8; nowMs += 2 * 24 * HOUR) {
    suspect = afterAccident(suspect, { ...SHARED, atMs: nowMs }, nowMs);
    hours.push(((suspect?.untilMs ?? 0) - nowMs) / HOUR);
  }
  expect(hours).toEqual([1, 2, 4, 8, 16, 24, 24, 24]);
});

test('a suspect gets the state "again" if an accident happens while the suspect runs alone, and keeps this state after later accidents', () => {
  expect(afterAccident(undefined, SHARED, NOW)).toMatchObject({ state: 'unproven' });
  const again = afterAccident(SUSPECT, ALONE, NOW + 1);
  expect(again).toMatchObject({ state: 'again', accidents: 2 });
  expect(afterAccident(SUSPECT, { ...ALONE, clusters: ['a', 'b'] }, NOW + 1)).toMatchObject({ state: 'unproven' });
  expect(afterAccident(undefined, { ...SHARED, clusters: ['a'] }, NOW)).toMatchObject({ state: 'unproven' });
  expect(afterAccident(again, { ...SHARED, atMs: NOW + HOUR }, NOW + HOUR)).toMatchObject({ state: 'again' });
});

test('all accidents of shared processes in one minute are counted as one, and each accident of a suspect that ran alone is counted', () => {
  expect(afterAccident(SUSPECT, { ...SHARED, atMs: NOW + 59_999 }, NOW + 125_000)).toBeUndefined();
  expect(afterAccident(SUSPECT, { ...SHARED, atMs: NOW + 60_000 }, NOW + 125_000)).toMatchObject({ accidents: 2 });
  expect(afterAccident(SUSPECT, { ...ALONE, atMs: NOW - 1 }, NOW + 65_000)).toBeUndefined();
  expect(afterAccident(SUSPECT, { ...ALONE, atMs: NOW }, NOW + 65_000)).toMatchObject({ accidents: 2 });
});
