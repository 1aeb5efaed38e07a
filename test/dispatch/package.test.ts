import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readPackagedSpec } from '../../lib/dispatch/apply-package.ts';
import type { Summary } from '../../lib/dispatch/dispatch.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import type { PackagedSpec } from '../../lib/runtime/environment.ts';
import { registerCluster, takeOverCluster } from '../../lib/table/cluster-registration.ts';
import { listClusters, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, aReport, type DispatchWorld } from '../support/dispatch-world.ts';

const SPEC = aClusterSpec({ name: 'packaged' });
const CHANGED = { ...SPEC, maxEventsPerPass: 5 };
const NONE: PackagedSpec = { outcome: 'none' };
const inPackage = (spec = SPEC): PackagedSpec => ({ outcome: 'spec', spec });

let world: DispatchWorld;

beforeEach(() => {
  world = aDispatchWorld();
});

/** A process of the function: what is in its package, and the stack that deployed it. It starts now. */
function aProcess(spec: PackagedSpec, stack = 'prod') {
  const packaged = { startedAtMs: world.clock.nowMs, spec: () => spec };
  return (id: LoopDefinition['id'] = 'kubernetes-service'): Promise<Summary> => {
    const loop = { id, run: () => Promise.resolve(aReport()) };
    return world.dispatch(loop, world.schedule(), { environment: { stack, packaged } });
  };
}

async function registered() {
  return (await listClusters(world.table)).clusters.map(({ spec, generation }) => [
    spec.name,
    spec.maxEventsPerPass,
    generation,
  ]);
}

const later = (ms = 60_000) => {
  world.clock.nowMs += ms;
};
const messages = () => world.telemetry.lines.map(({ message }) => message);

describe('a packaged cluster', () => {
  test('is registered by the first invocation, which runs its pass, and belongs to the stack', async () => {
    expect(await aProcess(inPackage())()).toEqual({ passes: 1, failed: 0, skipped: 0 });
    expect(await readCluster(world.table, SPEC.name)).toMatchObject({
      spec: SPEC,
      generation: 1,
      owner: { stack: 'prod', packaged: { startedAtMs: world.clock.nowMs } },
    });
    expect(messages()).toContain('cluster.yml registered');
  });

  test('is not written again while it stays the same, by this process or the next', async () => {
    await aProcess(inPackage())();
    const before = await world.table.get('#clusters', SPEC.name);
    later();
    const next = aProcess(inPackage());
    await next();
    later();
    await next();
    expect(await world.table.get('#clusters', SPEC.name)).toEqual(before);
  });

  test('is a new generation when another spec is deployed, and the old one again after a rollback', async () => {
    await aProcess(inPackage())();
    later();
    await aProcess(inPackage(CHANGED))();
    expect(await registered()).toEqual([['packaged', 5, 2]]);
    later(10_000);
    await aProcess(inPackage())();
    expect(await registered()).toEqual([['packaged', 20, 3]]);
  });

  test('is not put back by a process of the version before, whose first invocation comes late', async () => {
    const old = aProcess(inPackage());
    later(10_000);
    await aProcess(inPackage(CHANGED))();
    later(10_000);
    await old();
    expect(await registered()).toEqual([['packaged', 5, 1]]);
    expect(messages()).toContain('cluster.yml of an earlier deployment ignored');
  });

  test('is corrected by a process that is still invoked long after the deployment', async () => {
    const current = aProcess(inPackage(CHANGED));
    await current();
    later(1_000);
    await aProcess(inPackage())();
    expect(await registered()).toEqual([['packaged', 20, 2]]);
    later(3 * 60_000 - 1);
    await current();
    expect(await registered()).toEqual([['packaged', 20, 2]]);
    later(1);
    await current();
    expect(await registered()).toEqual([['packaged', 5, 3]]);
  });

  test('stops when it is taken out of the package, and its items stay', async () => {
    await aProcess(inPackage())();
    later();
    expect(await aProcess(NONE)()).toEqual({ passes: 0, failed: 0, skipped: 0 });
    expect(await registered()).toEqual([]);
    expect(await world.recordOf(SPEC.name, 'kubernetes-service')).toMatchObject({ outcome: 'succeeded' });
    expect(messages()).toContain('cluster unregistered: it is no longer in the package');
  });

  test('that was taken out is not put back by a process of the version before', async () => {
    await aProcess(inPackage())();
    later();
    const old = aProcess(inPackage());
    later(1_000);
    await aProcess(NONE)();
    await old();
    expect(await registered()).toEqual([]);
  });

  test('that was taken out comes back with its generations when it is deployed again', async () => {
    await aProcess(inPackage())();
    later();
    await aProcess(NONE)();
    later(1_000);
    await aProcess(inPackage())();
    expect(await registered()).toEqual([['packaged', 20, 2]]);
  });

  test('is registered by the endpoints loop alone', async () => {
    const run = aProcess(inPackage());
    for (const loop of ['system-namespaces', 'cluster-ip-repair', 'node-port-repair'] as const) await run(loop);
    expect(await registered()).toEqual([]);
  });

  test('takes in one that was registered by hand, and can no longer be', async () => {
    await registerCluster(world.table, CHANGED);
    await aProcess(inPackage())();
    expect(await registered()).toEqual([['packaged', 20, 2]]);
    await expect(registerCluster(world.table, CHANGED)).rejects.toMatchObject({ code: 'OwnedElsewhere' });
  });

  test('of another stack is left to its owner until it is taken over', async () => {
    await aProcess(inPackage())();
    later();
    const second = aProcess(inPackage(CHANGED), 'second');
    await second();
    expect(await registered()).toEqual([['packaged', 20, 1]]);
    expect(messages()).toContain('cluster.yml not registered: another stack owns the cluster');
    await takeOverCluster(world.table, SPEC.name, 'second');
    later();
    await second();
    expect(await registered()).toEqual([['packaged', 5, 2]]);
    await aProcess(NONE)();
    expect(await registered()).toEqual([['packaged', 5, 2]]);
  });

  test('leaves clusters alone that were registered by hand', async () => {
    await world.register({ name: 'by-hand' });
    await aProcess(NONE)();
    expect((await registered()).map(([name]) => name)).toEqual(['by-hand']);
  });

  test('whose file is not valid stays registered unchanged, which is logged and counted', async () => {
    await aProcess(inPackage())();
    later();
    const reason = 'cluster.yml: 1 fault\n  1:1  mode: is required';
    expect(await aProcess({ outcome: 'invalid', reason })()).toEqual({ passes: 1, failed: 0, skipped: 0 });
    expect(await registered()).toEqual([['packaged', 20, 1]]);
    expect(world.telemetry.counters).toMatchObject({ failures: 1 });
    expect(world.telemetry.lines).toContainEqual({
      level: 'error',
      message: 'cluster.yml not registered',
      fields: { errors: ['cluster.yml: 1 fault', '  1:1  mode: is required'] },
    });
  });

  test('whose registration a later version wrote stays unchanged, which is logged and counted, and the others have their passes', async () => {
    await world.register({ name: 'other' });
    await world.table.put({ cluster: '#clusters', key: SPEC.name, value: {}, schema: 2 }, undefined);
    expect(await aProcess(inPackage())()).toEqual({ passes: 2, failed: 1, skipped: 0 });
    expect((await world.table.get('#clusters', SPEC.name))?.schema).toBe(2);
    expect(messages()).toContain('cluster.yml not registered');
  });

  test('that cannot be written is tried again at the next tick', async () => {
    const { table } = world.environment;
    const put = () => Promise.reject(new TableError('Unavailable', 'no'));
    const process = aProcess(inPackage());
    Object.assign(world.environment, { table: () => ({ ...world.table, put }) });
    await process();
    Object.assign(world.environment, { table });
    expect(await registered()).toEqual([]);
    later();
    await process();
    expect(await registered()).toEqual([['packaged', 20, 1]]);
  });
});

describe('cluster.yml', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'package-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  test('need not be there', () => {
    expect(readPackagedSpec(path.join(folder, 'cluster.yml'))).toEqual({ outcome: 'none' });
  });

  test('is the spec that it says', () => {
    const lines = ['name: one', 'mode: observe', 'kubeconfig: {file: k.yml}', 'apiServers: [{address: 10.9.8.7}]'];
    writeFileSync(path.join(folder, 'cluster.yml'), lines.join('\n'));
    expect(readPackagedSpec(path.join(folder, 'cluster.yml'))).toMatchObject({
      outcome: 'spec',
      spec: { name: 'one', mode: 'observe' },
    });
  });

  test('with faults is reported with all of them', () => {
    writeFileSync(path.join(folder, 'cluster.yml'), 'name: one\nmode: destroy\n');
    expect(readPackagedSpec(path.join(folder, 'cluster.yml'))).toMatchObject({
      outcome: 'invalid',
      reason: expect.stringMatching(/^cluster\.yml: \d faults\n(.|\n)* {2}2:1 {2}mode: /),
    });
  });

  test('that cannot be read is not the same as none', () => {
    mkdirSync(path.join(folder, 'cluster.yml'));
    expect(readPackagedSpec(path.join(folder, 'cluster.yml'))).toMatchObject({
      outcome: 'invalid',
      reason: expect.stringContaining('cluster.yml cannot be read: EISDIR'),
    });
  });
});
