import { expect, test } from '@jest/globals';
import { restAfter } from '../../../cli/heartbeat/agent.ts';
import type { ProbeReply } from '../../../lib/cluster/probe-reply.ts';
import { A, B, type PassWorld, READY, SILENT, worldOf } from '../../support/pass-world.ts';

function aWorld(): PassWorld {
  return worldOf(A, B).answer(SILENT, B);
}

const goDown = (world: PassWorld) => world.deregister({ address: B, goingDown: true });

test('an API server with an agent is probed from the expiry of its lease until the next heartbeat', async () => {
  const world = aWorld().answer(READY, A, B);
  await world.heartbeat(B);
  await world.tick();
  await world.tick();
  expect([world.published(), (await world.lease(B))?.source]).toEqual([[A, B], 'probe']);
  await world.heartbeat(B);
  await world.tick();
  expect([world.probed.length, (await world.lease(B))?.source]).toEqual([1, 'agent']);
});

test('an API server with an agent is withdrawn for an hour when its host shuts down, and published again after the next heartbeat', async () => {
  const world = aWorld().answer(READY, A, B);
  await world.heartbeat(B, { leaseMs: 24 * 3_600_000 });
  await world.tick();
  expect(await goDown(world)).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  await world.tick();
  await world.tick(3_580_000);
  expect(world.published()).toEqual([A]);
  await goDown(world);
  expect((await world.heartbeat(B)).state).toBe('active');
  await world.tick(1_000);
  expect(world.published()).toEqual([A, B]);
});

test.each<[string, ProbeReply]>([
  ['gets no answer', SILENT],
  ['has no result', { kind: 'unknown', message: 'the probe was ended' }],
])('an agent whose probe %s does not change an active lease', async (_, reply) => {
  const world = aWorld();
  await world.heartbeat(B);
  const before = await world.lease(B);
  const { state } = await world.heartbeat(B, { probe: async () => reply });
  expect([state, await world.lease(B)]).toEqual(['down', before]);
});

test('an agent records in a withdrawn lease that its API server was down, and ends the withdrawal when the server answers', async () => {
  const world = aWorld();
  await world.heartbeat(B);
  await world.tick();
  await world.deregister({ address: B });
  for (const probe of [async () => READY, async () => SILENT]) {
    expect((await world.heartbeat(B, { probe })).state).toBe('withdrawn');
  }
  expect((await world.heartbeat(B)).state).toBe('active');
});

test('if an API server is deregistered while its agent probes the server, the server stays withdrawn', async () => {
  const world = aWorld();
  await world.heartbeat(B);
  const ask = async () => {
    await goDown(world);
    return READY;
  };
  await world.tick();
  expect((await world.heartbeat(B, { probe: ask })).state).toBe('lost');
  await world.tick(1_000);
  expect(world.published()).toEqual([A]);
});

const EVERY_MS = 10_000;

test('an agent waits for a part of an interval after its first refresh, for an interval after each later refresh, and for at most a second after a lost write', () => {
  const rest = (isRefreshed: boolean, isFirst: boolean) => restAfter({ isRefreshed, isFirst }, EVERY_MS, () => 0.5);
  expect([rest(true, false), rest(true, true), rest(false, false)]).toEqual([EVERY_MS, EVERY_MS / 2, 750]);
});
