import { expect, test } from '@jest/globals';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { withAddresses } from '../repair/services.ts';
import { serversAt } from '../support/a-cluster-spec.ts';
import { found } from '../support/found.ts';
import { copyOf } from '../support/memory-table.ts';
import { A, B, READY } from '../support/pass-world.ts';
import { LoopWorld } from './loop-world.ts';

const SPEC = { allocator: 'table', serviceClusterIPRanges: ['10.0.0.0/28'], apiServers: serversAt(A, B) } as const;
/** The number of addresses in the range that can be allocated. */
const CAPACITY = 14;

async function passes(world: LoopWorld): Promise<void> {
  for (const loop of [kubernetesService, clusterIpRepair, nodePortRepair]) await world.invoke(loop);
}

/** Allocates `count` addresses, or none if fewer are free. */
async function allocate(world: LoopWorld, count = 1): Promise<readonly string[]> {
  const { items } = await world.allocate([{ range: 'serviceips', next: true, count }]);
  return items.flatMap(({ outcome, value }) => (outcome === 'allocated' ? String(value) : []));
}

/** Returns a cluster whose passes have run, with two Services that each have an allocated address. */
async function atWork(): Promise<LoopWorld> {
  const world = await new LoopWorld().answer(READY, A, B).list().register(SPEC);
  await passes(world);
  for (const name of ['a', 'b']) {
    const [address] = await allocate(world);
    world.list(...(world.services ?? []), withAddresses(name, found(address)));
  }
  await passes(world);
  return world;
}

test('if the table loses some or all of its items, allocations before and after the next passes never return an address of a Service', async () => {
  const whole = await atWork();
  const { services = [] } = whole;
  const used = services.map(({ clusterIP }) => clusterIP);
  const keys = [...whole.content].flatMap(([cluster, items]) =>
    [...items.keys()].filter((key) => !key.startsWith('requests/')).map((key) => [cluster, key] as const),
  );
  expect(keys.length).toBeGreaterThan(6);
  for (let deleted = 1; deleted < 2 ** keys.length; deleted++) {
    const world = new LoopWorld().answer(READY, A, B).list(...services);
    world.nowMs = whole.nowMs + 1_000;
    for (const [cluster, items] of copyOf(whole.content)) world.content.set(cluster, items);
    for (const [at, [cluster, key]] of keys.entries()) if (deleted & (1 << at)) world.content.get(cluster)?.delete(key);
    const allocated = [...(await allocate(world))];
    await world.register(SPEC);
    await passes(world);
    // These are fifteen addresses, more than the range has.
    for (const count of [8, 4, 2, 1]) allocated.push(...(await allocate(world, count)));
    expect(allocated.filter((address) => used.includes(address))).toEqual([]);
    expect(allocated.length).toBeLessThanOrEqual(CAPACITY - used.length);
  }
});
