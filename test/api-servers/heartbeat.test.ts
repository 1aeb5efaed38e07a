import { describe, expect, test } from '@jest/globals';
import { A, aServer, B, EndpointsWorld, READY, SHUTTING_DOWN } from '../support/endpoints-world.ts';

/** A is probed, B keeps its own lease. */
function aWorld(): EndpointsWorld {
  return new EndpointsWorld([aServer(A), aServer(B)]).answer(READY, A);
}

const goDown = (world: EndpointsWorld) => world.deregister({ address: B, goingDown: true });

describe('a host that keeps its own lease', () => {
  test('is published while it does, and is not probed', async () => {
    const world = aWorld();
    for (let tick = 0; tick < 3; tick++) {
      expect((await world.heartbeat(B)).state).toBe('active');
      await world.tick();
      expect(world.published()).toEqual([A, B]);
    }
    expect(world.probed.map(({ url }) => url)).toEqual([`https://${A}:6443/readyz`]);
  });

  test('is probed from when its lease ran out until its next beat', async () => {
    const world = aWorld().answer(READY, A, B);
    await world.heartbeat(B);
    await world.tick();
    await world.tick();
    expect([world.published(), (await world.lease(B))?.source]).toEqual([[A, B], 'probe']);
    await world.heartbeat(B);
    await world.tick();
    expect([world.probed.length, (await world.lease(B))?.source]).toEqual([1, 'agent']);
  });

  test('is removed at the next tick when its server reports its shutdown, and back with a 200', async () => {
    const world = aWorld();
    await world.heartbeat(B);
    await world.tick();
    expect((await world.heartbeat(B, { probe: async () => SHUTTING_DOWN })).state).toBe('down');
    await world.tick(1_000);
    expect(world.published()).toEqual([A]);
    await world.heartbeat(B);
    await world.tick(1_000);
    expect(world.published()).toEqual([A, B]);
  });

  test('gives its lease up at its end, stays out for an hour, and comes back with its next beat', async () => {
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

  test('is probed again after its withdrawal ended, when its host does not refresh its lease', async () => {
    const world = aWorld().answer(READY, A, B);
    await world.heartbeat(B);
    await world.tick();
    await goDown(world);
    await world.tick(3_600_000);
    expect(world.published()).toEqual([A, B]);
    expect((await world.lease(B))?.source).toBe('probe');
  });

  test('yields to another writer of its lease while its server is probed', async () => {
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
});
