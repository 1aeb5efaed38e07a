import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { addressesIn, type EndpointsObject } from '../../lib/cluster/published-objects.ts';
import type { DeregisterRequest } from '../../lib/deregister/deregister.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { ApiServerSpec } from '../../lib/spec/cluster-spec.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { aHost, aServer } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { A, B, C, PassWorld, READY, SILENT, settled, worldOf } from '../support/pass-world.ts';
import { withdraw } from '../support/put-lease.ts';

const SHARED = '10.0.0.9';
const HOST = 'api.example.com';
const HOUR_MS = 3_600_000;
const DEREGISTERED = { outcome: 'deregistered', stillPublished: false };
const FENCED = expect.stringMatching(/^fenced/);

async function settledWith(servers: readonly ApiServerSpec[] = [aServer(A), aServer(B)]): Promise<PassWorld> {
  const world = await settled(new PassWorld({ apiServers: servers }).answer(READY, A, B, C, SHARED));
  world.cluster.writes.length = 0;
  return world;
}

const ask = (world: PassWorld, given: Partial<DeregisterRequest> & { readonly kubernetes?: ClusterPort } = {}) =>
  world.deregister({ address: B, ...given });

describe('deregistering an address', () => {
  test('a deregistration removes the address from Endpoints and slice at once', async () => {
    const world = await settledWith();
    const changes = [`updated endpoints default/kubernetes: ${A}`, `updated endpointslice default/kubernetes: ${A}`];
    const untilMs = world.nowMs + HOUR_MS;
    expect(await ask(world)).toEqual({ outcome: 'deregistered', untilMs, stillPublished: false, changes });
    expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
  });

  /** Returns a world with these objects. No tick has probed the servers, and only A and B have leases. */
  async function unprobed(...objects: readonly KubernetesObject[]): Promise<PassWorld> {
    const world = worldOf(A, B, C);
    for (const object of objects) world.cluster.place(object);
    for (const address of [A, B]) await world.setLease({ address, source: 'agent' });
    return world;
  }

  const unprobedC = () => unprobed(anEndpoints([A, B]), aSlice([A, B, C]));
  const withMasterCountOne = () =>
    settled(worldOf(A, B).change({ endpoints: { reconciler: 'master-count', masterCount: 1 } }));
  const withAgent = async () => {
    const world = await settledWith([aServer(A)]);
    await world.setLease({ address: B, source: 'agent' });
    return settled(world);
  };

  test.each<[string, () => Promise<PassWorld>, readonly string[]]>([
    ['keeps an address of the slice that no tick has probed yet', unprobedC, [A, C]],
    ["removes the address of an agent's lease although the spec does not contain it", withAgent, [A]],
    ['publishes another live address if the master count is one', withMasterCountOne, [A]],
  ])('a deregistration %s', async (_what, start, published) => {
    const world = await start();
    expect(world.published()).toContain(B);
    expect(await ask(world)).toMatchObject(DEREGISTERED);
    expect([world.published(), world.inSlice()]).toEqual([published, published]);
  });

  async function removed(): Promise<PassWorld> {
    const world = await settledWith();
    await world.setLease({ address: B, expiresAtMs: world.nowMs, misses: 2 });
    await world.answer(SILENT, B).tick();
    expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
    return world.answer(READY, B);
  }

  async function missedOnce(): Promise<PassWorld> {
    const world = await settledWith();
    await world.answer(SILENT, B).tick(60_000);
    world.cluster.place(anEndpoints([A]));
    return world;
  }

  test.each([
    { what: 'a recovered address in the slice', from: removed, kind: 'EndpointSlice', isWithdrawn: false },
    { what: 'a withdrawn address with one miss', from: missedOnce, kind: 'Endpoints', isWithdrawn: true },
  ])('a tick that publishes $what and crashes does not end a deregistration', async ({ from, kind, isWithdrawn }) => {
    const world = await from();
    const { port } = world.cluster;
    const answers: unknown[] = [];
    const update: ClusterPort['update'] = async (object) => {
      if (object.kind !== kind) return port.update(object);
      const { nowMs, table } = world;
      if (isWithdrawn) await withdraw(table, 'demo', { address: B, untilMs: nowMs + HOUR_MS, nowMs });
      answers.push(await ask(world));
      await port.update(object);
      throw new ClusterError('Unavailable', 'the process ended');
    };
    await expect(world.tick(1_000, { kubernetes: { ...port, update } })).rejects.toThrow('the process ended');
    expect(answers).toMatchObject([DEREGISTERED]);
    expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
    await world.tick();
    expect(world.cluster.writes).toEqual([]);
  });

  test('a deregistration stays in force if a tick meanwhile refreshes the lease and decides to publish the address', async () => {
    const world = await removed();
    const { port } = world.cluster;
    const late: EndpointsObject[] = [];
    const update: ClusterPort['update'] = async (object) => {
      late.push(object as EndpointsObject);
      throw new ClusterError('Unavailable', 'the process ended');
    };
    const get: KeyValueTable['get'] = async (cluster, key) => {
      const item = await world.table.get(cluster, key);
      if (late.length === 0) await world.tick(20_000, { kubernetes: { ...port, update } }).catch(() => undefined);
      return item;
    };
    expect(await ask(world, { table: { ...world.table, get } })).toMatchObject(DEREGISTERED);
    expect(late.map(addressesIn)).toEqual([[A, B]]);
    for (const object of late) expect(await port.update(object)).toMatchObject({ outcome: 'conflict' });
  });

  test('a deregistration repeats its write to the Endpoints or the slice if the write conflicts with another writer', async () => {
    const world = await settledWith();
    for (const object of [anEndpoints([A]), aSlice([A])]) world.cluster.place(object);
    let writes = 0;
    world.cluster.beforeWrite = () => (++writes === 1 ? { outcome: 'conflict' } : undefined);
    const changes = ['fenced endpoints default/kubernetes', 'fenced endpointslice default/kubernetes'];
    expect(await ask(world)).toMatchObject({ stillPublished: false, changes });
  });

  test('a deregistration writes nothing when it is repeated after the lease expired', async () => {
    const world = await settledWith();
    await ask(world);
    expect(await ask(world)).toMatchObject({ stillPublished: false, changes: [FENCED, FENCED] });
    expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
    const { nowMs } = world;
    await world.setLease({ address: B, expiresAtMs: nowMs - 30_000, withdrawnUntilMs: nowMs + HOUR_MS });
    world.cluster.writes.length = 0;
    expect(await ask(world)).toMatchObject({ outcome: 'deregistered', stillPublished: false, changes: [] });
    expect(world.cluster.writes).toEqual([]);
  });

  test('a deregistration reports that the address is still published if a slice of another writer contains it in another spelling', async () => {
    const world = await settled(worldOf('fd00::1', 'fd00::2').change({ serviceClusterIPRanges: ['fd00:10::/112'] }));
    const slice = aSlice(['FD00:0::2']);
    world.cluster.place({ ...slice, addressType: 'IPv6', metadata: { ...slice.metadata, name: 'kubernetes-x7k2p' } });
    expect(await ask(world, { address: 'fd00::2' })).toMatchObject({ outcome: 'deregistered', stillPublished: true });
  });
});

test('the deregistration of the last live address is refused, and changes nothing', async () => {
  const world = await settledWith();
  await ask(world, { address: A });
  world.cluster.writes.length = 0;
  expect(await ask(world)).toMatchObject({ outcome: 'refused', reason: 'lastLiveAddress' });
  expect(await world.lease(B)).not.toHaveProperty('withdrawnUntilMs');
  expect(world.cluster.writes).toEqual([]);
});

test('with lastOne, the deregistration of the last live address empties Endpoints and slice, and the loop leaves them empty', async () => {
  const world = await settledWith([aServer(B)]);
  expect(await ask(world, { lastOne: true })).toMatchObject(DEREGISTERED);
  expect([world.published(), world.inSlice()]).toEqual([[], []]);
  expect(await world.tick()).toMatchObject({ errors: [{ code: 'NoLiveLease' }] });
  expect(world.cluster.writes).toEqual([]);
});

test('if another writer changes the endpoints after a deregistration, a repetition of the deregistration without lastOne does not empty the endpoints', async () => {
  const world = await settledWith();
  await ask(world);
  await world.setLease({ address: A, expiresAtMs: world.nowMs, misses: 2 });
  world.cluster.place(anEndpoints([A, B]));
  expect(await ask(world)).toMatchObject({ outcome: 'deregistered', stillPublished: true, changes: [FENCED] });
  expect(world.published()).toEqual([A, B]);
});

test.each([
  { name: 'contains a text that is not an address', given: { address: 'server-1' }, reason: 'notAnAddress' },
  { name: 'ends in the past', given: { untilMs: 5 }, reason: 'badEnd' },
  { name: 'ends more than a day from now', given: { untilMs: 1_000_010_001 + 24 * HOUR_MS }, reason: 'badEnd' },
  { name: 'ends at an invalid time', given: { untilMs: Number.NaN }, reason: 'badEnd' },
  { name: 'is for an address that several servers share', given: { address: SHARED }, reason: 'shared' },
])('a deregistration is refused if it $name', async ({ given, reason }) => {
  const world = await settledWith([aServer(A), aServer(B), { ...aServer(SHARED), kind: 'shared' }]);
  expect(await ask(world, given)).toMatchObject({ outcome: 'refused', reason });
  expect(world.cluster.writes).toEqual([]);
});

test('the deregistration of an address is refused if a host name of the spec resolves to this address', async () => {
  const world = new PassWorld({ apiServers: [aServer(A), aHost(HOST)] }).answer(READY, A, SHARED);
  world.records.set(HOST, [SHARED]);
  await world.tick();
  const refusal = { outcome: 'refused', reason: 'shared', message: expect.stringContaining(HOST) };
  expect(await ask(world, { address: SHARED })).toMatchObject(refusal);
});

test('a deregistration is not accepted for an unknown address, or in a cluster whose endpoints this program does not manage', async () => {
  const world = await settledWith();
  expect(await ask(world, { address: '192.0.2.1' })).toMatchObject({ outcome: 'notRegistered' });
  world.change({ endpoints: { reconciler: 'none' } });
  expect(await ask(world)).toMatchObject({ outcome: 'notRegistered' });
});

test.each([
  ['reads the endpoints again after a conflict', 2, { stillPublished: false }],
  ['stops after four conflicting writes', 4, { stillPublished: true, error: { code: 'Conflict' } }],
])('a deregistration %s', async (_what, conflicts, result) => {
  const world = await settledWith();
  let writes = 0;
  world.cluster.beforeWrite = () => (++writes <= conflicts ? { outcome: 'conflict' } : undefined);
  expect(await ask(world)).toMatchObject({ outcome: 'deregistered', ...result });
  expect(writes).toBe(4);
});
