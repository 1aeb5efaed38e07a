import { expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import type { Hold } from '../../lib/range/hold.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type AllocateWorld, anAllocateWorld } from '../support/allocate-world.ts';
import { HOLD_END_MARGIN_MS } from '../support/ranges.ts';

/** Until it is over by every clock. */
const HOLD_MS = 15 * 60_000 + HOLD_END_MARGIN_MS;
const IP = { range: 'serviceips', value: '10.0.0.1' } as const;
const NEXT_PORT = { range: 'servicenodeports', next: true } as const;
const TAKEN_PORT = { range: 'servicenodeports', value: 30_001 } as const;

/** Of a person, for good, for whom it may concern. */
const FORMER: Hold = { owner: 'team-a', takenUpBy: 'any', requestId: 'kbctl-1', items: ['10.0.0.1', '10.0.0.2'] };

/** Two addresses are held, and a port is taken. */
async function aWorld(former: Hold = FORMER): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits([0, 1]), holds: [former] });
  await world.store(RANGE_KEYS.nodePorts, { data: fromBits([1]) });
  return world;
}

/** Who holds each address: the owner and until when. */
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

test('a request for a Service claims a held item with its own hold, and keeps the rest of the earlier hold', async () => {
  const world = await aWorld();
  expect(await world.ask({ items: [IP, NEXT_PORT], takeUp: {} })).toMatchObject({
    outcome: 'done',
    items: [
      { value: '10.0.0.1', outcome: 'allocated', hold: { owner: 'r1', takenUpBy: 'any' } },
      { value: 30_016, outcome: 'allocated' },
    ],
  });
  expect(await world.taken()).toEqual({ ...AS_IT_WAS, '10.0.0.1': 'r1', '30016': 'r1' });
});

test('a request for a Service gets the same answer when it is sent again, and allocates nothing twice', async () => {
  const world = await aWorld();
  const request = { items: [IP], takeUp: {} };
  const answer = await world.ask(request);
  const before = await world.items();
  expect(await world.ask(request)).toEqual({ ...answer, replayed: true });
  expect(await world.ask({ items: [IP] })).toMatchObject({ error: { code: 'RequestIdTaken' } });
  expect(await world.items()).toEqual(before);
});

test.each<[string, Partial<Hold>, AllocateRequest['takeUp'], string]>([
  ['has the label of the owner claims what is for the owner', { takenUpBy: 'owner' }, { holdOwner: 'team-a' }, 'done'],
  ['has another label does not', { takenUpBy: 'owner' }, { holdOwner: 'team-b' }, 'refused'],
  ['has any label claims what is for any', { takenUpBy: 'any' }, { holdOwner: 'team-b' }, 'done'],
  ['comes after the end of the hold claims nothing', { untilMs: Date.parse('2026-01-01T12:00:00Z') }, {}, 'refused'],
  ['is not named claims nothing', {}, undefined, 'refused'],
])('a request for a Service that %s', async (_, terms, takeUp, outcome) => {
  const world = await aWorld({ ...FORMER, ...terms });
  const before = await holders(world);
  const answer = await world.ask({ items: [IP], ...(takeUp && { takeUp }) });
  expect(answer.outcome).toBe(outcome);
  if (outcome === 'done') return;
  expect(answer.error).toMatchObject({ code: 'AlreadyAllocated', message: 'provided IP is already allocated' });
  expect(await holders(world)).toEqual(before);
});

test('a request for a Service claims nothing that another request allocated for its Service, which may not exist yet', async () => {
  const world = await aWorld();
  await world.ask({ items: [{ range: 'serviceips', value: '10.0.0.9' }], takeUp: {} });
  await world.ask({ requestId: 'r2', items: [{ range: 'serviceips', value: '10.0.0.10' }] });
  const ask = (requestId: string, value: string) =>
    world.ask({ requestId, items: [{ range: 'serviceips', value }], takeUp: {} });
  expect(await ask('r3', '10.0.0.9')).toMatchObject({ error: { code: 'AlreadyAllocated' } });
  expect(await ask('r4', '10.0.0.10')).toMatchObject({ outcome: 'done' });
  expect(await ask('r5', '10.0.0.10')).toMatchObject({ error: { code: 'AlreadyAllocated' } });
});

test('a request for a Service does not claim a hold that was prolonged meanwhile', async () => {
  const world = await aWorld();
  const prolonging: KeyValueTable = {
    ...world.table,
    put: async (content, previous) => {
      if (content.key === 'requests/r1' && previous === undefined) {
        await world.store(RANGE_KEYS.primary, { holds: [{ ...FORMER, untilMs: world.clock.nowMs + 5 * HOLD_MS }] });
      }
      return world.table.put(content, previous);
    },
  };
  const answer = await world.ask({ items: [IP], takeUp: {} }, prolonging);
  expect(answer).toMatchObject({ outcome: 'refused', error: { code: 'AlreadyAllocated' } });
  expect((await world.stored(RANGE_KEYS.primary)).holds).toMatchObject([{ untilMs: expect.any(Number) }]);
});

test('a refused request leaves the earlier hold unchanged', async () => {
  const world = await aWorld();
  expect(await world.ask({ items: [IP, TAKEN_PORT], takeUp: {} })).toMatchObject({ outcome: 'refused' });
  expect(await holders(world)).toEqual(BEFORE);
  expect(await world.taken()).toEqual(AS_IT_WAS);
});
