import { describe, expect, test } from '@jest/globals';
import { deregister } from '../../lib/api-servers/deregister.ts';
import { type HeartbeatRequest, heartbeat } from '../../lib/api-servers/heartbeat.ts';
import { aServer, EndpointsWorld, READY, SHUTTING_DOWN } from '../support/endpoints-world.ts';

const [A, B] = ['10.0.0.1', '10.0.0.2'] as const;

/** A is probed, B keeps its own lease. */
function aWorld(): EndpointsWorld {
  return new EndpointsWorld([aServer(A), aServer(B)]).answer(READY, A);
}

function beat(world: EndpointsWorld, given: Partial<HeartbeatRequest> = {}) {
  const { table, spec } = world;
  const request = { table, cluster: spec.name, address: B, leaseMs: 15_000, nowMs: () => world.nowMs };
  return heartbeat({ ...request, probe: async () => READY, ...given });
}

function goDown(world: EndpointsWorld) {
  const { spec, table } = world;
  const request = { spec, table, kubernetes: world.cluster.port, address: B, nowMs: () => world.nowMs };
  return deregister({ ...request, goingDown: true });
}

describe('a host that keeps its own lease', () => {
  test('is published while it does, and is not probed', async () => {
    const world = aWorld();
    for (let tick = 0; tick < 3; tick++) {
      expect((await beat(world)).state).toBe('held');
      await world.tick();
      expect(world.published()).toEqual([A, B]);
    }
    expect(world.probed.map(({ url }) => url)).toEqual([`https://${A}:6443/readyz`]);
  });

  test('is probed from when its lease ran out until its next beat', async () => {
    const world = aWorld().answer(READY, A, B);
    await beat(world);
    await world.tick();
    await world.tick();
    expect([world.published(), (await world.lease(B))?.source]).toEqual([[A, B], 'probe']);
    await beat(world);
    await world.tick();
    expect([world.probed.length, (await world.lease(B))?.source]).toEqual([1, 'agent']);
  });

  test('is removed at the next tick when its server reports its shutdown, and back with a 200', async () => {
    const world = aWorld();
    await beat(world);
    await world.tick();
    expect((await beat(world, { probe: async () => SHUTTING_DOWN })).state).toBe('down');
    await world.tick(1_000);
    expect(world.published()).toEqual([A]);
    await beat(world);
    await world.tick(1_000);
    expect(world.published()).toEqual([A, B]);
  });

  test('gives its lease up at its end, stays out for an hour, and comes back with its next beat', async () => {
    const world = aWorld().answer(READY, A, B);
    await beat(world, { leaseMs: 24 * 3_600_000 });
    await world.tick();
    expect(await goDown(world)).toMatchObject({ outcome: 'deregistered', stillPublished: false });
    await world.tick();
    await world.tick(3_580_000);
    expect(world.published()).toEqual([A]);
    await goDown(world);
    expect((await beat(world)).state).toBe('held');
    await world.tick(1_000);
    expect(world.published()).toEqual([A, B]);
  });

  test('is probed again after its withdrawal ended, when its host does not refresh its lease', async () => {
    const world = aWorld().answer(READY, A, B);
    await beat(world);
    await world.tick();
    await goDown(world);
    await world.tick(3_600_000);
    expect(world.published()).toEqual([A, B]);
    expect((await world.lease(B))?.source).toBe('probe');
  });

  test('yields to another writer of its lease while its server is probed', async () => {
    const world = aWorld();
    await beat(world);
    const ask = async () => {
      await goDown(world);
      return READY;
    };
    await world.tick();
    expect((await beat(world, { probe: ask })).state).toBe('lost');
    await world.tick(1_000);
    expect(world.published()).toEqual([A]);
  });
});
