import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { claimTick, runClaimedTicks } from '../../../cli/passes/serve-table.ts';
import type { Environment } from '../../../lib/runtime/environment.ts';
import { LOOPS, type Loop } from '../../../lib/spec/cluster-spec.ts';
import type { KeyValueTable } from '../../../lib/table/key-value-table.ts';
import { runnerClock } from '../../local/runner-clock.ts';
import { aDispatchWorld } from '../../support/dispatch-world.ts';
import { memoryTable } from '../../support/memory-table.ts';

const STACK = 's';
const TICK = { stack: STACK, loop: 'kubernetes-service', tickMs: 50_000 } as const;

/** Returns functions to start processes that share one table and one clock, and to let them run until `endMs`. */
function processes(endMs: number) {
  const { clock, signal, run } = runnerClock(endMs);
  const world = aDispatchWorld({ nowMs: clock.nowMs, stack: STACK });
  const claims: string[][] = [];
  const ran: { readonly by: string; readonly loop: string; readonly atS: number }[] = [];
  const start = (by: string, changes: Partial<Environment> = {}) => {
    const telemetry: Environment['telemetry'] = (labels) => {
      if (labels.requestId !== undefined) ran.push({ by, loop: labels.loop, atS: clock.nowMs() / 1000 });
      return world.telemetry;
    };
    const claimed = (loop: Loop, outcome: string) => claims.push([by, loop, outcome]);
    const monitor = { tried: () => undefined, claimed };
    return runClaimedTicks({ ...world.environment, telemetry, ...changes }, { by, clock, monitor }, signal);
  };
  const timesOf = (loop: string) => ran.filter((one) => one.loop === loop).map(({ atS }) => atS);
  return { world, start, run, timesOf, signal, claims };
}

test('two processes on one table together run each tick of each loop exactly once', async () => {
  const { start, run, timesOf, claims } = processes(200_000);
  await Promise.all([start('a'), start('b'), run()]);
  expect(timesOf('kubernetes-service')).toEqual(Array.from({ length: 20 }, (_, at) => at * 10));
  expect(timesOf('system-namespaces')).toEqual([0, 60, 120, 180]);
  expect(timesOf('cluster-ip-repair')).toEqual([0, 180]);
  expect(timesOf('node-port-repair')).toEqual([0, 180]);
  const outcomes = claims.map(([, , outcome]) => outcome);
  expect(outcomes.filter((outcome) => outcome === 'won')).toHaveLength(28);
  expect(outcomes.filter((outcome) => outcome === 'lost')).toHaveLength(28);
});

test('after a process has claimed a tick and died, another process runs the next tick', async () => {
  const { world, start, run, timesOf } = processes(40_000);
  await claimTick(world.table, { ...TICK, tickMs: 0 }, 'dead');
  await Promise.all([start('alive'), run()]);
  expect(timesOf('kubernetes-service')).toEqual([10, 20, 30]);
});

test('a tick that never ends does not delay other ticks', async () => {
  const { world, start, run, timesOf, signal } = processes(40_000);
  await world.register({ name: 'silent' });
  let connections = 0;
  const untilTheEnd = async () => {
    connections += 1;
    await once(signal, 'abort');
    throw new Error('the end');
  };
  await Promise.all([start('a', { connect: untilTheEnd }), run()]);
  expect(connections).toBeGreaterThan(0);
  expect(timesOf('kubernetes-service')).toEqual([0, 10, 20, 30]);
});

test('if a process cannot claim a tick, it logs the failure, and tries to claim the next tick', async () => {
  const { world, start, run, timesOf, claims } = processes(30_000);
  let reads = 0;
  const get: KeyValueTable['get'] = async (cluster, key) => {
    reads += 1;
    if (reads <= LOOPS.length) throw new Error('the table is gone');
    return world.table.get(cluster, key);
  };
  const table: Environment['table'] = (deadline) => ({ ...world.environment.table(deadline), get });
  await Promise.all([start('a', { table }), run()]);
  expect(timesOf('kubernetes-service')).toEqual([10, 20]);
  expect(world.telemetry.lines.map(({ message }) => message)).toContain('tick not claimed');
  expect(claims.slice(0, LOOPS.length).map(([, , outcome]) => outcome)).toEqual(LOOPS.map(() => 'failed'));
});

const LATER_MS = TICK.tickMs + 3_600_000;
test.each([
  ['of another loop can be claimed', {}, { loop: 'node-port-repair' }, true],
  ['of another stack can be claimed', {}, { stack: 'other' }, true],
  ['can no longer be claimed once another process has claimed a later tick', { tickMs: 60_000 }, {}, false],
  ['can be claimed after a claim by a process whose clock was an hour ahead', { tickMs: LATER_MS }, {}, true],
] as const)('a tick %s', async (_, claimed, tick, isOurs) => {
  const table = memoryTable();
  await claimTick(table, { ...TICK, ...claimed }, 'a');
  expect(await claimTick(table, { ...TICK, ...tick }, 'b')).toBe(isOurs);
});
