import { expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { Hold } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type AllocateWorld, anAllocateWorld } from '../support/allocate-world.ts';
import { HOLD_MS } from '../support/ranges.ts';
import { failingPuts } from '../support/table-through.ts';

const IP = { range: 'serviceips', value: '10.0.0.1' } as const;
const NEXT_PORT = { range: 'servicenodeports', next: true } as const;
const TAKEN_PORT = { range: 'servicenodeports', value: 30_001 } as const;

/** A hold that a user requested with kbctl. It never ends, and any Service is allowed to claim it. */
const FORMER: Hold = { owner: 'team-a', takenUpBy: 'any', requestId: 'kbctl-1', items: ['10.0.0.1', '10.0.0.2'] };

/** Returns a world in which two addresses are held and a port is allocated. */
async function aWorld(former: Hold = FORMER): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits([0, 1]), holds: [former] });
  await world.store(RANGE_KEYS.nodePorts, { data: fromBits([1]) });
  return world;
}

/** Returns the terms of the hold of each address: owner, end, possible claimers and request. */
async function holders({ stored }: AllocateWorld): Promise<Record<string, readonly unknown[]>> {
  const { holds } = await stored(RANGE_KEYS.primary);
  return Object.fromEntries(
    holds.flatMap(({ items, owner, untilMs, takenUpBy, requestId }) =>
      items.map((item) => [item, [owner, untilMs, takenUpBy, requestId]]),
    ),
  );
}

const AS_IT_WAS = { '10.0.0.1': 'kbctl-1', '10.0.0.2': 'kbctl-1', '30001': undefined };
const BEFORE = await holders(await aWorld());

const OWNER_ONLY = { takenUpBy: 'owner' } as const;
const ENDED = { untilMs: Date.parse('2026-01-01T12:00:00Z') };

test.each<[string, Partial<Hold>, AllocateRequest['takeUp'], string]>([
  ['for a Service with the label of the owner claims an item', OWNER_ONLY, { holdOwner: 'team-a' }, 'done'],
  ['for a Service with another label does not claim an item', OWNER_ONLY, { holdOwner: 'team-b' }, 'refused'],
  ['for a Service with any label claims an item that is held for any Service', {}, { holdOwner: 'team-b' }, 'done'],
  ['for a Service claims nothing after the end of the hold', ENDED, {}, 'refused'],
  ['without a Service claims nothing', {}, undefined, 'refused'],
])('a request %s', async (_, terms, takeUp, outcome) => {
  const world = await aWorld({ ...FORMER, ...terms });
  const before = await holders(world);
  const answer = await world.ask({ items: [IP], ...(takeUp && { takeUp }) });
  expect(answer.outcome).toBe(outcome);
  if (outcome === 'done') return;
  expect(answer.error).toMatchObject({ code: 'AlreadyAllocated', message: 'provided IP is already allocated' });
  expect(await holders(world)).toEqual(before);
});

test('after a request has claimed an item for a Service, another request cannot claim the item, even if no Service has it yet', async () => {
  const world = await aWorld();
  await world.ask({ items: [{ range: 'serviceips', value: '10.0.0.9' }], takeUp: {} });
  await world.ask({ requestId: 'r2', items: [{ range: 'serviceips', value: '10.0.0.10' }] });
  const ask = (requestId: string, value: string) =>
    world.ask({ requestId, items: [{ range: 'serviceips', value }], takeUp: {} });
  expect(await ask('r3', '10.0.0.9')).toMatchObject({ error: { code: 'AlreadyAllocated' } });
  expect(await ask('r4', '10.0.0.10')).toMatchObject({ outcome: 'done' });
  expect(await ask('r5', '10.0.0.10')).toMatchObject({ error: { code: 'AlreadyAllocated' } });
});

/**
 * Returns the table of the world. When the record of the request `r1` is first written, the stored range of cluster IPs gets this
 * change.
 */
function changedMeanwhile(world: AllocateWorld, change: Partial<StoredRange>): KeyValueTable {
  return {
    ...world.table,
    put: async (content, previous) => {
      if (content.key === 'requests/r1' && previous === undefined) await world.store(RANGE_KEYS.primary, change);
      return world.table.put(content, previous);
    },
  };
}

test('a request for a Service does not claim an item if the owner extends the hold of the item during the request', async () => {
  const world = await aWorld();
  const extended = { holds: [{ ...FORMER, untilMs: world.clock.nowMs + 5 * HOLD_MS }] };
  const answer = await world.ask({ items: [IP], takeUp: {} }, changedMeanwhile(world, extended));
  expect(answer).toMatchObject({ outcome: 'refused', error: { code: 'AlreadyAllocated' } });
  expect((await world.stored(RANGE_KEYS.primary)).holds).toMatchObject([{ untilMs: expect.any(Number) }]);
});

test('if the owner releases an item during a request for a Service, the request neither allocates the item nor restores the hold of the item', async () => {
  const world = await aWorld();
  const released = { data: fromBits([1]), holds: [{ ...FORMER, items: ['10.0.0.2'] }] };
  const answer = await world.ask({ items: [IP, TAKEN_PORT], takeUp: {} }, changedMeanwhile(world, released));
  expect(answer).toMatchObject({ outcome: 'refused', items: [{ error: { code: 'NotHeld' } }, {}] });
  expect(await world.taken()).toEqual({ '10.0.0.2': 'kbctl-1', '30001': undefined });
});

test('if a request for a Service failed and the hold of the request has expired, a repetition is refused, and the earlier hold of the items is restored', async () => {
  const world = await aWorld();
  const table = failingPuts(world.table, 'Unavailable', ({ key }) => key === RANGE_KEYS.nodePorts);
  const request: Partial<AllocateRequest> = { items: [IP, NEXT_PORT], takeUp: {} };
  await expect(world.ask(request, table)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(await world.taken()).toEqual({ ...AS_IT_WAS, '10.0.0.1': 'r1' });
  world.clock.nowMs += HOLD_MS;
  await world.repair(world.clock.nowMs);
  expect(await world.ask(request)).toMatchObject({ outcome: 'refused', error: { code: 'BadHold' } });
  expect(await holders(world)).toEqual(BEFORE);
});
