import { describe, expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { updateCluster, withMode } from '../../lib/table/cluster-registration.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { CutCalls, type End, FAILURES } from '../support/cut-calls.ts';
import { HOLD_MS } from '../support/ranges.ts';
import { failingPuts } from '../support/table-through.ts';
import { repairPass } from './repair-after.ts';

const IP = { range: 'serviceips', value: '10.0.0.1' } as const;

describe('an interrupted request', () => {
  const request = { items: [IP, { range: 'servicenodeports', value: 30_002 }] satisfies AllocateRequest['items'] };

  /** Invokes the request. The write of the second range fails. */
  const interrupted = async () => {
    const world = await anAllocateWorld({ isRepaired: false });
    await world.repair(world.clock.nowMs);
    const table = failingPuts(world.table, 'Unavailable', ({ key }) => key === RANGE_KEYS.nodePorts);
    const resumes = /^Unavailable: request r1 was not finished, invoke it again .* it resumes where this one ended\. /;
    await expect(world.ask(request, table)).rejects.toThrow(resumes);
    expect(await world.taken()).toEqual({ '10.0.0.1': 'r1' });
    return world;
  };

  test('an interrupted request that is repeated after the end of its hold is refused, and a pass frees its items', async () => {
    const world = await interrupted();
    world.clock.nowMs += HOLD_MS;
    await world.repair(world.clock.nowMs);
    expect(await world.ask(request)).toMatchObject({ outcome: 'refused', error: { code: 'BadHold' } });
    await repairPass(world);
    expect(await world.taken()).toEqual({});
  });

  test.each<[string, (world: AllocateWorld) => Promise<unknown>]>([
    ['in mode observe', ({ table }) => updateCluster(table, CLUSTER, withMode('observe'))],
    ['after three intervals without a repair', async ({ clock }) => (clock.nowMs += 10 * 60_000)],
  ])(
    'a repetition of an unfinished request %s is told to try again and not refused, because the request might hold items',
    async (_, close) => {
      const world = await interrupted();
      await close(world);
      await expect(world.ask(request)).rejects.toMatchObject({
        code: 'Unavailable',
        message: expect.stringContaining('was not finished, invoke it again with the same requestId'),
      });
      expect(await world.taken()).toEqual({ '10.0.0.1': 'r1' });
    },
  );
});

describe('a release in three ranges', () => {
  const items: AllocateRequest['items'] = [
    IP,
    { range: 'secondaryserviceips', value: 'fd00::1' },
    { range: 'servicenodeports', value: 30_001 },
  ];
  const request = { operation: 'release', items } as const;

  /** Returns a world in which all items of the release are allocated. */
  const taken = async () => {
    const world = await anAllocateWorld();
    for (const key of Object.values(RANGE_KEYS)) {
      await world.store(key, { data: fromBits(key === RANGE_KEYS.nodePorts ? [1] : [0]) });
    }
    return world;
  };

  /** Another request allocates the items of the release that are free now. @returns these items */
  const takeWhatIsFree = async (world: AllocateWorld): Promise<AllocateRequest['items']> => {
    const looked = await world.ask({ requestId: 'r2', operation: 'lookUp', items });
    const free = items.filter((_, index) => looked.items[index]?.outcome === 'free');
    if (free.length > 0) await world.ask({ requestId: 'r3', items: free });
    return free;
  };

  /** Runs a release whose call number `at` fails. @returns whether the release makes that many calls */
  const ends = async (at: number, end: End): Promise<boolean> => {
    const world = await taken();
    const calls = new CutCalls(at, end);
    const asked = await world.ask(request, calls.table(world.table)).catch(() => undefined);
    if (!calls.happened) return false;
    await calls.arrive();
    const first = asked?.error?.code === 'InProgress' ? undefined : asked;
    const hasBegun = (await world.table.get('demo', 'requests/r1')) !== undefined;
    const others = hasBegun ? await takeWhatIsFree(world) : [];

    const answer = await world.askAgain(request);
    expect(answer.outcome).toBe('done');
    if (first !== undefined) expect(answer).toEqual({ ...first, replayed: true });
    const isUnsure = first === undefined && hasBegun && answer.replayed !== true;
    if (isUnsure) expect(answer.items.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown', 'unknown']);
    const now = await world.taken();
    for (const { value } of others) expect(now).toHaveProperty([String(value)], 'r3');
    return true;
  };

  test.each(Object.entries(FAILURES))(
    'if a call of a release %s, a repetition completes the release, and frees no item that another request has allocated since',
    async (_, end) => {
      let calls = 0;
      while (await ends(calls, end)) calls++;
      // The release reads all items, writes the record, writes each range, and writes the result.
      expect(calls).toBe(1 + 1 + 3 + 1);
    },
  );
});
