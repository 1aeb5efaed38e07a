import { describe, expect, test } from '@jest/globals';
import type { EndpointReconcilerType } from '../../lib/cluster/cluster-spec.ts';
import { isHeld } from '../../lib/cluster/lease.ts';
import { REFUSAL } from '../../lib/endpoints/reconcilers.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { countedWriteIds, memoryTable } from '../support/memory-table.ts';
import { addressReconciler } from '../support/one-address.ts';

const [OWN, OTHER, THIRD, FOURTH] = ['1.2.3.4', '4.3.2.1', '4.3.2.2', '4.3.2.3'] as const;
const ALL = [OWN, OTHER, THIRD, FOURTH];

function aServer(type: EndpointReconcilerType = 'lease') {
  let nowMs = 1_000_000;
  const table = memoryTable({ nowMs: () => nowMs, newWriteId: countedWriteIds() });
  const cluster = memoryCluster();
  const options = {
    table,
    cluster: 'demo',
    kubernetes: cluster.port,
    leaseMs: 60_000,
    masterCount: 4,
    nowMs: () => nowMs,
  };
  return {
    cluster,
    reconciler: addressReconciler(type, options),
    later: (ms: number) => {
      nowMs += ms;
    },
    held: async () => {
      const { leases } = await readLeases(table, 'demo');
      return leases.filter((lease) => isHeld(lease, nowMs)).map(({ address }) => address);
    },
    published: () =>
      cluster.find<ReturnType<typeof anEndpoints>>({ kind: 'Endpoints', namespace: 'default', name: 'kubernetes' }),
    slice: () =>
      cluster.find<ReturnType<typeof aSlice>>({ kind: 'EndpointSlice', namespace: 'default', name: 'kubernetes' }),
  };
}

async function withAll(type: EndpointReconcilerType = 'lease') {
  const server = aServer(type);
  for (const address of ALL) await server.reconciler.reconcileAddress(address, [HTTPS], true);
  server.cluster.writes.length = 0;
  return server;
}

describe('one address of the lease reconciler', () => {
  test('is published with the others whose leases are held', async () => {
    const server = await withAll();
    expect(server.published()?.subsets).toEqual(anEndpoints(ALL).subsets);
    expect(await server.held()).toEqual(ALL);
  });

  test.each([
    { name: 'before it is stopped', stop: false },
    { name: 'after it is stopped', stop: true },
  ])('is removed $name and leaves three', async ({ stop }) => {
    const server = await withAll();
    if (stop) server.reconciler.stopReconciling();
    expect(await server.reconciler.removeAddress(OWN, [HTTPS])).toBeUndefined();
    expect(server.cluster.writes).toEqual(['update endpoints', 'update endpointslices']);
    expect(await server.held()).toEqual(ALL.slice(1));
  });

  test('without a lease is not removed, and nothing is written', async () => {
    const server = await withAll();
    const error = await server.reconciler.removeAddress('9.9.9.9', [HTTPS]);
    expect(error).toMatchObject({ code: 'LeaseNotFound', message: 'lease 9.9.9.9 not found' });
    expect(server.cluster.writes).toEqual([]);
  });

  test('whose lease ran out counts as one without', async () => {
    const server = await withAll();
    server.later(60_000);
    expect(await server.reconciler.removeAddress(OWN, [HTTPS])).toMatchObject({ code: 'LeaseNotFound' });
  });

  test('leaves the other three when it is removed from Endpoints without subsets', async () => {
    const server = await withAll();
    server.cluster.place(anEndpoints([]));
    await server.reconciler.removeAddress(OWN, [HTTPS]);
    expect(server.published()?.subsets).toEqual(anEndpoints(ALL.slice(1)).subsets);
  });

  test('is not removed as the last one before it is stopped', async () => {
    const server = aServer();
    await server.reconciler.reconcileAddress(OWN, [HTTPS], true);
    expect(await server.reconciler.removeAddress(OWN, [HTTPS])).toMatchObject({
      code: 'NoLiveLease',
      message: REFUSAL,
    });
    expect(server.published()?.subsets).toEqual(anEndpoints([OWN]).subsets);
  });

  test('reconciled twice at once takes turns, so that neither loses its lease to the other', async () => {
    const server = aServer();
    const twice = [OWN, OWN].map((address) => server.reconciler.reconcileAddress(address, [HTTPS], true));
    expect(await Promise.all(twice)).toEqual([undefined, undefined]);
  });
});

describe('an API server that shuts down', () => {
  test.each([
    { name: 'as the last one, after reconciling', last: true, reconcileFirst: true },
    { name: 'as the last one, while a reconcile waits', last: true, reconcileFirst: false },
    { name: 'as one of four, after reconciling', last: false, reconcileFirst: true },
    { name: 'as one of four, while a reconcile waits', last: false, reconcileFirst: false },
  ])('$name adds nothing back', async ({ last, reconcileFirst }) => {
    const server = last ? aServer() : await withAll();
    const { reconciler } = server;
    await reconciler.reconcileAddress(OWN, [HTTPS], true);
    const first = reconcileFirst ? [reconciler.reconcileAddress(OWN, [HTTPS], true)] : [];
    const waiting = [...first, reconciler.removeAddress(OWN, [HTTPS]), reconciler.reconcileAddress(OWN, [HTTPS], true)];
    reconciler.stopReconciling();
    await Promise.all(waiting);
    const left = last ? [] : ALL.slice(1);
    expect(await server.held()).toEqual(left);
    expect(server.published()?.subsets).toEqual(anEndpoints(left).subsets);
    expect(server.slice()?.endpoints).toEqual(aSlice(left).endpoints);
  });
});

describe('one address of the master-count reconciler', () => {
  test('comes back only when it reconciles, and never after it was stopped', async () => {
    const server = await withAll('master-count');
    await server.reconciler.removeAddress(OWN, [HTTPS]);
    expect(server.published()?.subsets).toEqual(anEndpoints(ALL.slice(1)).subsets);
    server.reconciler.stopReconciling();
    await server.reconciler.reconcileAddress(OWN, [HTTPS], true);
    expect(server.published()?.subsets).toEqual(anEndpoints(ALL.slice(1)).subsets);
  });

  test('reports when another writer created the Endpoints first', async () => {
    const server = aServer('master-count');
    server.cluster.beforeWrite = () => ({ outcome: 'alreadyExists' });
    expect(await server.reconciler.reconcileAddress(OWN, [HTTPS], true)).toMatchObject({ code: 'AlreadyExists' });
  });

  test('leases are none of its business', async () => {
    expect(await (await withAll('master-count')).held()).toEqual([]);
  });
});

describe('reconciling one address after the other', () => {
  test('continues after one of them failed', async () => {
    const server = aServer();
    server.cluster.beforeWrite = () => {
      throw new Error('lost');
    };
    const failed = server.reconciler.reconcileAddress(OWN, [HTTPS], true);
    await expect(failed).rejects.toThrow('lost');
    server.cluster.beforeWrite = undefined;
    expect(await server.reconciler.reconcileAddress(OWN, [HTTPS], true)).toBeUndefined();
  });
});
