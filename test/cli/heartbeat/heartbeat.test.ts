import { describe, expect, test } from '@jest/globals';
import { A, B, type EndpointsWorld, READY, SILENT, worldOf } from '../../support/endpoints-world.ts';

function aWorld(): EndpointsWorld {
  return worldOf(A, B).answer(SILENT, B);
}

const goDown = (world: EndpointsWorld) => world.deregister({ address: B, goingDown: true });

describe('an API server with an agent', () => {
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

  test('if the API server does not answer, its agent leaves an active lease unchanged, and records in a withdrawn lease that the server was down', async () => {
    const world = aWorld();
    await world.heartbeat(B);
    await world.tick();
    const before = await world.lease(B);
    const silent = { probe: async () => SILENT };
    expect([(await world.heartbeat(B, silent)).state, await world.lease(B)]).toEqual(['down', before]);
    await world.deregister({ address: B });
    expect((await world.heartbeat(B)).state).toBe('withdrawn');
    expect((await world.heartbeat(B, silent)).state).toBe('withdrawn');
    expect(await world.lease(B)).toMatchObject({ source: 'agent', seenDown: true });
    expect((await world.heartbeat(B)).state).toBe('active');
  });

  test('an agent whose probe has no result does not change the lease', async () => {
    const world = aWorld();
    await world.heartbeat(B);
    const before = await world.lease(B);
    const probe = async () => ({ kind: 'unknown', message: 'the probe was ended' }) as const;
    expect([(await world.heartbeat(B, { probe })).state, await world.lease(B)]).toEqual(['down', before]);
  });

  test('an API server stays withdrawn if it is deregistered while its agent probes it', async () => {
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
