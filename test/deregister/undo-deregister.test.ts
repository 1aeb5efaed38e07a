import { expect, test } from '@jest/globals';
import { undoDeregister } from '../../lib/deregister/deregister.ts';
import { anEndpoints } from '../support/an-endpoints.ts';
import { A, B, type PassWorld, READY, SILENT, settled, worldOf } from '../support/pass-world.ts';

const HOUR_MS = 3_600_000;

async function withdrawn(): Promise<PassWorld> {
  const world = await settled(worldOf(A, B));
  await world.deregister({ address: B });
  return world;
}

function undo({ spec, table, nowMs }: PassWorld, address: string = B, aheadMs = 0) {
  return undoDeregister({ spec, table, address, nowMs: () => nowMs + aheadMs });
}

test('the undo of a deregistration changes nothing when it is repeated', async () => {
  const world = await withdrawn();
  expect(await undo(world)).toEqual({ outcome: 'undone', address: B, wasUntilMs: world.nowMs + HOUR_MS });
  const before = await world.lease(B);
  expect(await undo(world)).toEqual({ outcome: 'notWithdrawn', address: B });
  expect(await world.lease(B)).toEqual(before);
});

test('after the undo, a server whose agent refreshes the lease is published until the lease expires and the server misses two probes', async () => {
  const world = await withdrawn();
  await world.setLease({ address: B, source: 'agent' });
  await undo(world);
  await world.tick(5_000);
  expect(world.published()).toEqual([A, B]);
  await world.answer(SILENT, B).tick(20_000);
  expect(world.published()).toEqual([A, B]);
  await world.tick();
  expect(world.published()).toEqual([A]);
});

test('after the undo of a deregistration, the address counts as live at once, also for a caller whose clock is a second behind', async () => {
  const world = await withdrawn();
  await world.setLease({ address: B, source: 'agent' });
  await undo(world, B, 1_000);
  await world.deregister({ address: A, lastOne: true });
  expect(await world.deregister({ address: B })).toMatchObject({ outcome: 'refused', reason: 'lastLiveAddress' });
});

test.each([
  { name: 'a text that is no address', address: 'server-1', result: { outcome: 'notAnAddress' } },
  { name: 'an unknown address', address: '192.0.2.1', result: { outcome: 'notRegistered' } },
])('the undo of a deregistration reports $name', async ({ address, result }) => {
  expect(await undo(await withdrawn(), address)).toEqual(result);
});

test('a published server stays published if it answers a probe, although another pass counts a miss at the same time', async () => {
  const world = await withdrawn();
  await undo(world);
  world.cluster.place(anEndpoints([A, B]));
  world.whileProbing = () => world.setLease({ address: B, misses: 1, missedAtMs: world.nowMs });
  await world.tick();
  expect(world.published()).toEqual([A, B]);
});

test('the undo of a deregistration ends the withdrawal although a running pass had read the lease before the undo', async () => {
  const world = await withdrawn();
  world.whileProbing = () => undo(world);
  await world.answer(SILENT, B).tick();
  expect(await world.lease(B)).toMatchObject({ withdrawnUntilMs: world.nowMs, seenDown: false });
  await world.answer(READY, B).tick();
  expect(world.published()).toEqual([A, B]);
});
