import { expect, test } from '@jest/globals';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type AllocateWorld, anAllocateWorld } from '../support/allocate-world.ts';

const IP = '10.0.0.17';
const BIT = 16;
const items: AllocateRequest['items'] = [{ range: 'serviceips', value: IP }];
const release = { operation: 'release', items } as const;
/** The time limit of an invocation, plus the largest difference between two clocks. */
const TIME_MS = 30_000;

/** Returns a table that, instead of its first write of a range, runs `meanwhile` and returns the outcome `lost`. */
function losing(table: KeyValueTable, meanwhile: () => Promise<void>): KeyValueTable {
  let isFirst = true;
  return {
    ...table,
    put: async (content, previous) => {
      if (isFirst && content.key.startsWith('ranges/')) {
        isFirst = false;
        await meanwhile();
        return { outcome: 'lost' };
      }
      return table.put(content, previous);
    },
  };
}

/** Returns a world in which the address is allocated, with a hold if an owner is given. */
async function withTaken(owner?: string): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  const holds = owner === undefined ? [] : [{ items: [IP], owner, takenUpBy: 'any' as const }];
  await world.store(RANGE_KEYS.primary, { data: fromBits([BIT]), holds });
  return world;
}

/** Another request frees the address, and a third request allocates it. */
async function changeHands(world: AllocateWorld): Promise<void> {
  expect(await world.ask({ ...release, requestId: 'r2' })).toMatchObject({ items: [{ outcome: 'released' }] });
  expect(await world.ask({ requestId: 'r3', items })).toMatchObject({ outcome: 'done' });
}

async function claimedByService(world: AllocateWorld): Promise<void> {
  await world.store(RANGE_KEYS.primary, { holds: [] });
}

test.each<[string, () => Promise<AllocateWorld>, (world: AllocateWorld) => Promise<void>, string | undefined]>([
  ['that another owner now holds', () => withTaken('former'), changeHands, 'r3'],
  ['that had no hold and that another request now holds', () => withTaken(), changeHands, 'r3'],
  ['that a Service has claimed', () => withTaken('former'), claimedByService, undefined],
])('after a lost attempt, a release does not free an address %s; a simultaneous retry is refused', async (...row) => {
  const [, start, change, owner] = row;
  const world = await start();
  let again: Answer | undefined;
  const meanwhile = async () => {
    again = await world.ask(release);
    await change(world);
  };
  const answer = await world.ask(release, losing(world.table, meanwhile));
  expect(again).toMatchObject({ outcome: 'refused', error: { code: 'InProgress' } });
  expect(again).not.toHaveProperty('replayed');
  const changed = { code: 'NotHeld', message: `${IP} is not held as it was when this request began: look it up` };
  expect(answer).toMatchObject({ outcome: 'refused', items: [{ error: changed }], error: changed });
  expect(await world.taken()).toEqual({ [IP]: owner });
  expect(await world.ask(release)).toEqual({ ...answer, replayed: true });
});

test('a release does not repeat a conflicting write after its deadline, and a retry of the release gets an answer', async () => {
  const world = await withTaken();
  let again: Answer | undefined;
  const meanwhile = async () => {
    world.clock.nowMs += TIME_MS - 1;
    expect(await world.ask(release)).toMatchObject({ error: { code: 'InProgress' } });
    world.clock.nowMs += 1;
    again = await world.ask(release);
    await changeHands(world);
    await claimedByService(world);
  };
  await expect(world.ask(release, losing(world.table, meanwhile))).rejects.toMatchObject({
    code: 'DeadlineExceeded',
  });
  expect(again).toMatchObject({ outcome: 'done', items: [{ outcome: 'unknown' }] });
  expect(await world.taken()).toEqual({ [IP]: undefined });
});

const error = { code: 'NotHeld', message: `${IP} is not held by team-a as when this request began: look it up` };

test.each([
  ['releases an item of that owner', () => withTaken('team-a'), { outcome: 'released' }, []],
  ['refuses an item of another owner', () => withTaken('team-b'), { outcome: 'refused', error }, [IP]],
  ['refuses an item without a hold', () => withTaken(), { outcome: 'refused', error }, [IP]],
  ['reports a free item as free', () => anAllocateWorld(), { outcome: 'free' }, []],
] as const)('a release for the owner of a hold %s', async (_, start, item, taken) => {
  const world = await start();
  expect(await world.ask({ ...release, owner: 'team-a' })).toMatchObject({ items: [item] });
  expect(Object.keys(await world.taken())).toEqual(taken);
});
