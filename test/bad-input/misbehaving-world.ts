import { expect } from '@jest/globals';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import type { ClusterSpec, Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { LOOP_HANDLERS } from '../../local/loop-handlers.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { startMisbehavingCluster, TOKEN } from '../support/misbehaving-cluster.ts';

export const CLUSTER = 'demo';

export type MisbehavingWorld = Awaited<ReturnType<typeof aMisbehavingWorld>>;

/**
 * Creates, for one test, one registered cluster and the handlers of all loops. The table allocates, so that every loop has
 * something to write in its first pass. After the test, it is checked that no log line and no table item contains the token of
 * the cluster.
 */
export async function aMisbehavingWorld() {
  const cluster = await startMisbehavingCluster();
  const { environment, telemetry, clock, deadlines, table } = aDispatchWorld({
    connect: (wanted, options) => connections.connect(wanted, options),
  });
  const connections = new ClusterConnections({
    nowMs: environment.nowMs,
    loadKubeconfig: () => loadKubeconfigFile(cluster.kubeconfigFile),
    sleep: async () => undefined,
  });
  const specOf = (change: Partial<ClusterSpec> = {}) =>
    aClusterSpec({
      name: CLUSTER,
      allocator: 'table',
      kubeconfig: { file: cluster.kubeconfigFile },
      apiServers: [aServer('10.9.8.7', { url: `${cluster.url}/readyz` })],
      ...change,
    });
  await registerCluster(table, specOf());
  afterThisTest(async () => {
    await connections.close();
    await cluster.stop();
    expect(JSON.stringify([telemetry.lines, await itemsIn(table)])).not.toContain(TOKEN);
  });

  const tick = (loop: Loop) => {
    clock.nowMs += specOf().intervalSeconds[loop] * 1000;
    const event = { 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() };
    return LOOP_HANDLERS[loop](event, { environment, getRemainingTimeInMillis: () => 60_000 });
  };
  const record = async (loop: Loop) => (await readRunRecord(table, CLUSTER, loop))?.record;
  const state = async () => ({
    objects: await cluster.objects(),
    items: (await itemsIn(table)).filter(({ key }) => !/^(runs\/|masterleases$)/.test(key)),
  });

  return {
    cluster,
    telemetry,
    table,
    spec: specOf,
    /** Invokes the loop's handler once, an interval after the last invocation. */
    tick,
    /** Ends all deadlines that have started. */
    expireDeadlines: () => {
      for (const { expire } of deadlines) expire();
    },
    record,
    /** Returns the objects of the cluster and the items of the table, except run records and leases. */
    state,
    /** Runs a pass that must fail, change nothing and log this error. */
    expectFailedPass: async (loop: Loop, pattern: RegExp) => {
      const before = await state();
      expect(await tick(loop)).toEqual({ passes: 1, failed: 1, skipped: 0 });
      const errors = expect.arrayContaining([expect.stringMatching(pattern)]);
      const fields = { cluster: CLUSTER, errors };
      expect(telemetry.lines[0]).toMatchObject({ level: 'error', message: 'pass failed', fields });
      expect(telemetry.lines[0]?.fields['eventErrors']).toBeUndefined();
      expect(await state()).toEqual(before);
    },
    /** Expects that the run record contains the first failure of a pass, with this error. */
    expectFirstFailure: async (loop: Loop, code: string, pattern: RegExp) => {
      const error = { code, message: expect.stringMatching(pattern) };
      expect(await record(loop)).toMatchObject({ outcome: 'failed', failuresInARow: 1, error });
    },
    /** Runs a pass that must succeed and write something. */
    expectNextPass: async (loop: Loop) => {
      const before = await state();
      expect(await tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
      expect(await record(loop)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
      expect(await state()).not.toEqual(before);
    },
  };
}

async function itemsIn(table: KeyValueTable): Promise<Item[]> {
  const partitions = await Promise.all(['#clusters', CLUSTER].map((partition) => table.list(partition, '')));
  return partitions.flat();
}
