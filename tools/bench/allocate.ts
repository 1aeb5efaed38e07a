// Compares requests to allocate with bare conditional updates of one item.
import { randomUUID } from 'node:crypto';
import { allocation } from '../../lib/allocate/allocation.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { SharedBackOff } from '../../lib/util/back-off.ts';
import type { Clock } from '../../test/simulation/clock.ts';
import { anAllocateWorld, CLUSTER } from '../../test/support/allocate-world.ts';
import { fleetClock } from '../../test/support/fleet-model.ts';
import { memoryTable } from '../../test/support/memory-table.ts';
import { seededPick } from '../../test/support/ranges.ts';
import { tableThrough } from '../../test/support/table-through.ts';
import type { Figure } from './figure.ts';

const ADDRESSES = 254;
/** The duration of a call from a function to DynamoDB. */
const CALL_MS = 5;
const PEER = 'read and conditional write of one item';

/** Models callers, one per process, that together allocate all addresses of a /24 range. Only table calls and waits take time. */
export async function ofCallers(callers: number, rounds: number): Promise<Figure[]> {
  const [ours, others]: [Modelled[], Modelled[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    for (const [open, results] of [[allocations, ours] as const, [bareUpdates, others] as const]) {
      // Waits are random. A fixed seed makes the figures of unchanged code the same in each run.
      const pick = seededPick(round);
      Math.random = () => pick(2 ** 32) / 2 ** 32;
      results.push(await modelled(callers, open));
    }
  }
  const figure = (name: string, value: (one: Modelled) => number): Figure => {
    const what = `allocate, callers: ${callers}, ${name}`;
    return { what, peer: PEER, unit: 'ms', ours: ours.map(value), others: others.map(value) };
  };
  return [
    figure('an item', ({ totalMs }) => totalMs / ADDRESSES),
    figure('99th percentile', ({ latenciesMs }) => latenciesMs[Math.floor(0.99 * ADDRESSES)] ?? Number.NaN),
  ];
}

interface Modelled {
  readonly totalMs: number;
  readonly latenciesMs: readonly number[];
}

async function modelled(callers: number, open: typeof allocations | typeof bareUpdates): Promise<Modelled> {
  const clock = fleetClock();
  const memory = memoryTable();
  const table = tableThrough(memory, async (step) => {
    await clock.wait(CALL_MS / 2);
    const result = await step();
    await clock.wait(CALL_MS / 2);
    return result;
  });
  const newCaller = await open(memory, clock, table);
  const startedMs = clock.nowMs;
  const latenciesMs: number[] = [];
  let [left, totalMs] = [ADDRESSES, 0];
  const run = async () => {
    const call = newCaller();
    while (left-- > 0) {
      const atMs = clock.nowMs;
      await call();
      latenciesMs.push(clock.nowMs - atMs);
      totalMs = clock.nowMs - startedMs;
    }
  };
  const all = Promise.all(Array.from({ length: callers }, run));
  while (latenciesMs.length < ADDRESSES) await clock.runUntil(clock.nowMs + 100);
  await all;
  return { totalMs, latenciesMs: latenciesMs.sort((one, other) => one - other) };
}

/**
 * @param memory the table without delays. The cluster is registered in this table before the measurement
 * @param table the same table with delays. The measured requests use this table
 */
async function allocations(
  memory: KeyValueTable,
  clock: Clock,
  table: KeyValueTable,
): Promise<() => () => Promise<void>> {
  const nowMs = () => Math.floor(clock.nowMs);
  const world = await anAllocateWorld({ table: memory, isRepaired: false });
  await world.repair(nowMs());
  const environment = {
    ...world.environment,
    nowMs,
    startDeadline: (ms: number) => clock.startDeadline(ms),
    table: () => table,
  };
  return () => {
    const handler = allocation({ pause: (ms) => clock.wait(ms) });
    return async () => {
      const items = [{ range: 'serviceips', next: true }];
      const event = { requestId: randomUUID(), cluster: CLUSTER, operation: 'allocate', items };
      const { error } = await handler(event, { getRemainingTimeInMillis: () => 30_000, environment });
      if (error !== undefined) throw new Error(error.message);
    };
  };
}

function bareUpdates(_: KeyValueTable, clock: Clock, table: KeyValueTable): () => () => Promise<void> {
  return () => {
    const backoff = new SharedBackOff((ms) => clock.wait(ms), Math.random);
    return async () => {
      await backoff.begin();
      for (let attempt = 0; ; attempt += 1) {
        const atMs = clock.nowMs;
        const previous = await table.get('peer', 'counter');
        const { outcome } = await table.put({ cluster: 'peer', key: 'counter', value: 0, schema: 1 }, previous);
        if (outcome === 'won') return backoff.won();
        await backoff.lost(attempt, clock.nowMs - atMs);
      }
    };
  };
}
