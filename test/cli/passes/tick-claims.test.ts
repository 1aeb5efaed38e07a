import { expect, test } from '@jest/globals';
import { claimTick } from '../../../cli/passes/tick-claims.ts';
import { memoryTable } from '../../support/memory-table.ts';

const TICK = { stack: 's', loop: 'kubernetes-service', everyMs: 10_000, dueAtMs: 50_000 } as const;

test('one of several processes gets a tick, and each tick can be claimed once', async () => {
  const table = memoryTable();
  const claims = await Promise.all(['a', 'b', 'c'].map((by) => claimTick(table, TICK, by)));
  expect(claims.filter(Boolean)).toHaveLength(1);
  expect(await claimTick(table, TICK, 'd')).toBe(false);
  expect(await claimTick(table, { ...TICK, dueAtMs: 60_000 }, 'd')).toBe(true);
});

test('each loop and each stack has its own claims', async () => {
  const table = memoryTable();
  await claimTick(table, TICK, 'a');
  expect(await claimTick(table, { ...TICK, loop: 'node-port-repair' }, 'a')).toBe(true);
  expect(await claimTick(table, { ...TICK, stack: 'other' }, 'a')).toBe(true);
});

test('a tick that passed while another process ran the next one is not claimed', async () => {
  const table = memoryTable();
  await claimTick(table, { ...TICK, dueAtMs: 60_000 }, 'a');
  expect(await claimTick(table, TICK, 'b')).toBe(false);
});

test('a claim by a process whose clock was an hour ahead does not stop the loop', async () => {
  const table = memoryTable();
  await claimTick(table, { ...TICK, dueAtMs: TICK.dueAtMs + 3_600_000 }, 'a');
  expect(await claimTick(table, TICK, 'b')).toBe(true);
});
