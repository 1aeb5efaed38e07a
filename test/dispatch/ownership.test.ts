import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Summary } from '../../lib/dispatch/dispatch.ts';
import type { PassContext, PassReport } from '../../lib/loops/pass.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { rangeContent } from '../../lib/table/ranges.ts';
import { aDispatchWorld, aLoop, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { putLease } from '../support/put-lease.ts';
import { storedRange } from '../support/ranges.ts';

let world: DispatchWorld;
let seen: PassContext | undefined;

beforeEach(() => {
  world = aDispatchWorld();
  seen = undefined;
});

async function tick(
  stack: string | undefined,
  run: (context: PassContext) => Promise<PassReport> | PassReport = () => aReport(),
  id: Loop = 'kubernetes-service',
): Promise<Summary> {
  const { loop, contexts } = aLoop(run, id);
  world.clock.nowMs += 180_000;
  const summary = await world.dispatch(loop, {}, { environment: { ...(stack !== undefined && { stack }) } });
  seen = contexts[0];
  return summary;
}

/** Writes an object, a lease and a range, and reads the leases. */
async function writesAll({ table, kubernetes, spec, nowMs }: PassContext): Promise<PassReport> {
  await kubernetes.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-public' } });
  await putLease(table, spec.name, { address: '10.0.0.9', expiresAtMs: nowMs() + 15_000 });
  const range = rangeContent(storedRange({ range: '10.0.0.0/24', data: new Uint8Array(0) }));
  await table.put({ ...range, cluster: spec.name, key: 'ranges/serviceips' }, undefined);
  const { leases: held } = await readLeases(table, spec.name);
  return aReport({ changes: ['wrote'], counts: { activeLeases: held.length }, state: 'remembered' });
}

async function outcomeOfWrite(context: PassContext | undefined): Promise<string> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-public' } };
  return (await context?.kubernetes.create(namespace))?.outcome ?? 'no pass';
}

test('the first stack that runs a pass for a cluster without an owner becomes the owner, and the generation of the spec stays the same', async () => {
  await world.register({});
  await tick('prod');
  expect(await readCluster(world.table, 'demo')).toMatchObject({ generation: 1, owner: { stack: 'prod' } });
  expect(await outcomeOfWrite(seen)).toBe('created');
});

test('if two stacks simultaneously run a pass for a cluster without an owner, one stack claims the cluster and the other stack only observes it', async () => {
  await world.register({});
  const outcomes: string[] = [];
  const run = async (context: PassContext) => {
    outcomes.push(await outcomeOfWrite(context));
    return aReport();
  };
  await Promise.all([tick('prod', run), tick('second', run)]);
  expect(outcomes.toSorted()).toEqual(['created', 'withheld']);
});

test.each(['system-namespaces', 'cluster-ip-repair', 'node-port-repair'] as const)(
  'a cluster without an owner has no pass of %s until kubernetes-service has claimed the cluster',
  async (loop) => {
    await world.register({});
    expect(await tick('prod', undefined, loop)).toEqual({ passes: 0, failed: 0, skipped: 1 });
    expect(await readCluster(world.table, 'demo')).not.toHaveProperty('owner');
    await tick('prod');
    expect(await tick('prod', undefined, loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
  },
);

test('a process without a stack runs a pass for a cluster without an owner, and does not become the owner', async () => {
  await world.register({});
  await tick(undefined);
  expect(await readCluster(world.table, 'demo')).not.toHaveProperty('owner');
  expect(await outcomeOfWrite(seen)).toBe('created');
});

describe('a cluster of another stack', () => {
  beforeEach(async () => {
    await world.register({});
    await tick('prod', () => aReport({ state: 'of the owner' }));
    world.telemetry.lines.length = 0;
  });

  test('a pass for a cluster of another stack writes its metrics, but writes neither to the cluster nor to its table items', async () => {
    const before = await world.table.list('demo', '');
    expect(await tick('second', writesAll)).toEqual({ passes: 1, failed: 0, skipped: 0 });
    expect(await world.table.list('demo', '')).toEqual(before);
    expect(world.cluster().writes).toEqual([]);
    expect(world.telemetry.samples).toContainEqual({ name: 'activeLeases', value: 1 });
    const fields = { cluster: 'demo', mode: 'observe', ownedBy: 'prod', wouldWrite: ['create Namespace kube-public'] };
    expect(world.telemetry.lines).toMatchObject([{ message: 'pass succeeded', fields }, {}]);
  });

  test('a pass for a cluster of another stack gets the state that the owner has saved, and runs even if a pass of the owner has just run', async () => {
    await tick('prod', () => aReport({ state: 'of the owner' }), 'cluster-ip-repair');
    world.clock.nowMs -= 170_000;
    await tick('second', undefined, 'cluster-ip-repair');
    expect(seen).toMatchObject({ previous: { state: 'of the owner' } });
  });

  test('a process without a stack does not write to a cluster of a stack', async () => {
    await tick(undefined);
    expect(await outcomeOfWrite(seen)).toBe('withheld');
  });
});

test('if a cluster is unregistered while a stack claims it, the stack neither registers it again nor runs a pass for it', async () => {
  await world.register({});
  const { table } = world;
  let reads = 0;
  const get: typeof table.get = async (cluster, key) => {
    if (key === 'demo') reads += 1;
    // The first read is that of the pass, and the second that of the claim.
    if (reads === 2) await updateCluster(table, 'demo', unregistered);
    return table.get(cluster, key);
  };
  const environment = { stack: 'prod', table: () => ({ ...table, get }) };
  const summary = await world.dispatch(aLoop({}, 'kubernetes-service').loop, {}, { environment });
  expect(summary).toEqual({ passes: 0, failed: 0, skipped: 1 });
  expect(await world.recordOf('demo', 'kubernetes-service')).toBeUndefined();
  expect(await readCluster(table, 'demo')).toBeUndefined();
});
