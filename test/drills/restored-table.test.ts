import { expect, test } from '@jest/globals';
import { ENDPOINTS_REF, type EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';
import { updateCluster, withAllocationClosed, withOwner } from '../../lib/table/cluster-registration.ts';
import { CLUSTER, LoopWorld, serversAt } from '../crash-sweep/loop-world.ts';
import { withAddresses } from '../repair/services.ts';
import { A, B, READY } from '../support/endpoints-world.ts';
import { found } from '../support/found.ts';
import { copyOf, memoryStore } from '../support/memory-table.ts';
import { stockCidr, stockRecord, stockService } from '../support/stock-objects.ts';

/*
 * Tests the promise of docs/backup.md, "Restore": after any loss or restore of the table, no address of a Service is allocated
 * again.
 */

const SPEC = { allocator: 'table', serviceClusterIPRanges: ['10.0.0.0/28'], apiServers: serversAt(A, B) } as const;
const STOCK_SPEC = { ...SPEC, allocator: 'apiserver', repair: { ipAddresses: true } } as const;
/** The number of addresses in the range that can be allocated. */
const CAPACITY = 14;
const MINUTE_MS = 60_000;

/** Returns a cluster whose passes have run, with two Services that each have an allocated address. */
async function atWork(): Promise<LoopWorld> {
  const world = await new LoopWorld().answer(READY, A, B).register(SPEC);
  await passes(world);
  for (const name of ['a', 'b']) await createService(world, name);
  await passes(world);
  return world;
}

async function passes(world: LoopWorld): Promise<void> {
  for (const loop of [kubernetesService, clusterIpRepair, nodePortRepair]) await world.invoke(loop);
}

/** Allocates `count` addresses, or none if fewer are free. */
async function allocate(world: LoopWorld, count = 1): Promise<readonly string[]> {
  const { items } = await world.allocate([{ range: 'serviceips', next: true, count }]);
  return items.flatMap(({ outcome, value }) => (outcome === 'allocated' ? String(value) : []));
}

async function createService(world: LoopWorld, name: string): Promise<void> {
  const [address] = await allocate(world);
  world.services = [...world.services, withAddresses(name, found(address))];
}

/** Allocates as many addresses as possible, and fails if a Service has one of them. */
async function allocatesNothingUsed(world: LoopWorld): Promise<number> {
  const allocated: string[] = [];
  // These are fifteen addresses, more than the range has.
  for (const count of [8, 4, 2, 1]) allocated.push(...(await allocate(world, count)));
  const used = new Set(world.services.flatMap(({ clusterIPs }) => clusterIPs));
  expect(allocated.filter((address) => used.has(address))).toEqual([]);
  return allocated.length;
}

/**
 * Checks that nothing can be allocated before the next passes, and that after them every address without a Service can be
 * allocated.
 */
async function opensWithItsPasses(world: LoopWorld): Promise<void> {
  expect(await allocatesNothingUsed(world)).toBe(0);
  await passes(world);
  expect(await allocatesNothingUsed(world)).toBe(CAPACITY - world.services.length);
}

test('after an empty table replaced a lost one, nothing is allocated before the first passes, and then no address that a Service has', async () => {
  const world = await atWork();
  const published = () => world.cluster.find<EndpointsObject>(ENDPOINTS_REF)?.subsets;
  const before = published();
  world.store = memoryStore();
  expect(await allocatesNothingUsed(world)).toBe(0);
  await world.register(SPEC);
  await opensWithItsPasses(world);
  expect(published()).toEqual(before);
});

test('a backup that is restored for another stack allocates nothing before that stack takes over the cluster and completes its passes', async () => {
  const world = await atWork();
  const backup = copyOf(world.store);
  await createService(world, 'c');
  world.store = backup;
  world.stack = 'restored';
  await updateCluster(world.table, CLUSTER, withAllocationClosed);
  await passes(world);
  expect(await allocatesNothingUsed(world)).toBe(0);
  await updateCluster(world.table, CLUSTER, withOwner(world.stack));
  await opensWithItsPasses(world);
});

test('a table that lost some of its items never allocates an address of a Service, neither before nor after its next passes', async () => {
  const whole = await atWork();
  const keys = [...whole.store].flatMap(([cluster, items]) =>
    [...items.keys()].filter((key) => !key.startsWith('requests/')).map((key) => [cluster, key] as const),
  );
  expect(keys.length).toBeGreaterThan(6);
  for (let deleted = 1; deleted < 2 ** keys.length; deleted++) {
    const world = new LoopWorld().answer(READY, A, B);
    world.clock.nowMs = whole.clock.nowMs + 1_000;
    world.services = whole.services;
    world.store = copyOf(whole.store);
    for (const [at, [cluster, key]] of keys.entries()) if (deleted & (1 << at)) world.store.get(cluster)?.delete(key);
    const [address] = await allocate(world);
    expect(whole.services.map(({ clusterIP }) => clusterIP)).not.toContain(address);
    await world.register(SPEC);
    await passes(world);
    await allocatesNothingUsed(world);
  }
});

test('a second deployment with a table of its own allocates no address of a Service that existed at its last pass, even if the first deployment allocated it', async () => {
  const world = await atWork();
  const [first, second] = [world.store, memoryStore()];
  world.store = second;
  world.stack = 'second';
  await world.register(SPEC);
  for (const store of [second, first, second, first]) {
    world.store = store;
    world.stack = store === first ? 'prod' : 'second';
    world.clock.nowMs += 3 * MINUTE_MS;
    await passes(world);
    const used = world.services.flatMap(({ clusterIPs }) => clusterIPs);
    await createService(world, `s-${world.services.length}`);
    expect(used).not.toContain(world.services.at(-1)?.clusterIP);
  }
});

const LONG_AGO = '2026-01-01T00:00:00Z';
const LEAKED = '10.0.0.9';
const ENDLESS = { owner: 'team-a', takenUpBy: 'any' } as const;

function placeRecord({ cluster }: LoopWorld, address: string, parent: string, creationTimestamp = LONG_AGO): void {
  const record = stockRecord(address, parent);
  cluster.place({ ...record, metadata: { ...record.metadata, creationTimestamp } });
}

/** Returns a cluster whose API servers allocate, with two Services, a hold and a leaked IPAddress that a pass has seen. */
async function stockAtWork(): Promise<LoopWorld> {
  const services = [stockService('a', '10.0.0.2'), stockService('b', '10.0.0.3')];
  const world = new LoopWorld([stockCidr('10.0.0.0/28'), ...services, ipAddressOfHold('10.0.0.4', ENDLESS)]);
  world.hasOwnServices = true;
  await world.registerClaimed(STOCK_SPEC);
  placeRecord(world, '10.0.0.2', 'a/a');
  placeRecord(world, '10.0.0.3', 'a/b');
  placeRecord(world, LEAKED, 'a/gone');
  await world.later(clusterIpRepair, 1, 3 * MINUTE_MS);
  return world;
}

const recordsOf = ({ cluster }: LoopWorld) =>
  ['10.0.0.2', '10.0.0.3', '10.0.0.4', LEAKED].filter(
    (name) => cluster.find({ kind: 'IPAddress', name }) !== undefined,
  );

test.each([
  ['an empty table that replaces a lost table', () => memoryStore()],
  ['a table that is restored to an earlier state', copyOf],
])(
  'with %s, passes delete no IPAddress of a Service, of a hold or of a request that runs, and one that leaked later',
  async (_, backupOf) => {
    const world = await stockAtWork();
    const backup = backupOf(world.store);
    await world.later(clusterIpRepair, 1, 3 * MINUTE_MS);
    expect(recordsOf(world)).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4']);
    // A request that still runs got the address of the leaked IPAddress.
    placeRecord(world, LEAKED, 'a/c', new Date(world.clock.nowMs).toISOString());
    world.cluster.remove({ kind: 'IPAddress', name: '10.0.0.3' });
    world.store = backup;
    await world.registerClaimed(STOCK_SPEC);
    await world.later(clusterIpRepair, 2, 30_000);
    expect(recordsOf(world)).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4', LEAKED]);
    await world.later(clusterIpRepair, 2, 3 * MINUTE_MS);
    expect(recordsOf(world)).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4']);
  },
);
