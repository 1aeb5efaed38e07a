import { describe, expect, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { LEASES } from '../../lib/table/leases.ts';
import {
  A,
  B,
  C,
  type EndpointsWorld,
  READY,
  SHUTTING_DOWN,
  SILENT,
  settled,
  worldOf,
} from '../support/endpoints-world.ts';

/** Returns a Kubernetes client that runs `meanwhile` once before the pass reads the Endpoints. */
function beforeEndpoints(world: EndpointsWorld, meanwhile: () => Promise<unknown>): ClusterPort {
  const { port } = world.cluster;
  let done: Promise<unknown> | undefined;
  return {
    ...port,
    get: async (ref) => {
      if (ref.kind === 'Endpoints') done ??= meanwhile();
      await done;
      return port.get(ref);
    },
  };
}

describe('concurrent writes of the leases, which share one table item', () => {
  test('no lease is lost if a tick and two agents write at the same time', async () => {
    const world = await settled();
    world.nowMs += 10_000;
    await Promise.all([world.tick(0), world.heartbeat(B), world.heartbeat(C)]);
    await Promise.all([world.tick(0), world.heartbeat(C), world.heartbeat(B)]);
    for (const address of [A, B, C]) {
      expect(await world.lease(address)).toMatchObject({ address, expiresAtMs: world.nowMs + 15_000 });
    }
    expect(world.published()).toEqual([A, B, C]);
  });

  test('a deregistration that is written while an agent and a tick probe is not overwritten', async () => {
    const world = await settled();
    await world.heartbeat(B);
    world.whileProbing = () => world.deregister({ address: C });
    const probe = async () => {
      await world.tick();
      return READY;
    };
    expect((await world.heartbeat(B, { probe })).state).toBe('active');
    expect(await world.lease(C)).toMatchObject({ withdrawnUntilMs: expect.any(Number) });
    expect(world.published()).toEqual([A, B]);
  });
});

describe('a change after a tick wrote its leases', () => {
  test('a tick removes an address whose agent reported a shutdown during the probes, although the server answered its probe', async () => {
    const world = await settled();
    world.whileProbing = () => world.heartbeat(B, { probe: async () => SHUTTING_DOWN });
    await world.tick();
    expect(world.published()).toEqual([A, C]);
  });

  test('a tick does not publish an address that is deregistered before the tick reads the Endpoints', async () => {
    const world = await settled();
    const kubernetes = beforeEndpoints(world, () => world.deregister({ address: B }));
    await world.tick(10_000, { kubernetes });
    expect(world.cluster.writes).toEqual(['update endpoints', 'update endpointslices']);
    expect([world.published(), world.inSlice()]).toEqual([
      [A, C],
      [A, C],
    ]);
  });

  test('an address whose deregistration begins after a tick has written the leases is removed only by the next tick', async () => {
    const world = await settled();
    const kubernetes = beforeEndpoints(world, () =>
      world.setLease({ address: B, withdrawnUntilMs: world.nowMs + 3_600_000 }),
    );
    await world.tick(10_000, { kubernetes });
    expect([world.cluster.writes, world.published()]).toEqual([[], [A, B, C]]);
    await world.tick();
    expect(world.published()).toEqual([A, C]);
  });

  test('a tick does not remove the addresses that it has just added if all of them are deregistered at that time, because some deregistrations might be undone', async () => {
    const world = worldOf(A, B, C);
    const { port } = world.cluster;
    const kubernetes: ClusterPort = {
      ...port,
      create: async (object) => {
        const result = await port.create(object);
        if (object.kind === 'EndpointSlice') {
          for (const address of [A, B, C]) await world.setLease({ address, withdrawnUntilMs: world.nowMs + 60_000 });
        }
        return result;
      },
    };
    await world.tick(0, { kubernetes });
    expect(world.published()).toEqual([A, B, C]);
  });

  test('a tick reads the leases again before it reports that no lease is valid', async () => {
    const world = await settled();
    world.answer(SILENT, A, B, C);
    await world.tick();
    const kubernetes = beforeEndpoints(world, () => world.heartbeat(B));
    expect(await world.tick(10_000, { kubernetes })).toMatchObject({ errors: [], counts: { activeLeases: 3 } });
  });

  test.each([
    ['executed', true],
    ['not executed', false],
  ])(
    'if the reply to the write of the leases is lost, a tick writes nothing to the cluster; here, the write was %s',
    async (_, isMade) => {
      const world = await settled();
      let puts = 0;
      const put: typeof world.table.put = async (content, previous) => {
        if (content.key === LEASES) puts += 1;
        if (isMade) await world.table.put(content, previous);
        return { outcome: 'unclear' };
      };
      const report = await world.tick(10_000, { table: { ...world.table, put } });
      expect([report.errors, world.cluster.writes, puts]).toEqual([[], [], 1]);
      expect((await world.lease(B))?.generation).toBe(isMade ? 2 : 1);
    },
  );
});
