import type { ClusterSpec, Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Summary } from '../../lib/dispatch/dispatch.ts';
import { ClusterConnections } from '../../lib/environment/cluster-connections.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RunRecord, readRunRecord } from '../../lib/table/run-records.ts';
import { LOOP_HANDLERS } from '../../local/loop-handlers.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { countedWriteIds, memoryStore, memoryTable } from './memory-table.ts';
import { type MisbehavingCluster, startMisbehavingCluster } from './misbehaving-cluster.ts';
import { type RecordingTelemetry, recordingTelemetry } from './recording-telemetry.ts';

export const CLUSTER = 'demo';

/** A table, bound to a deadline if it is given one. */
export type OpenTable = (deadline?: AbortSignal) => KeyValueTable;

/** One registered cluster, and the handlers of its loops. Time stands still, and only passes when a test says so. */
export interface MisbehavingWorld {
  readonly cluster: MisbehavingCluster;
  readonly telemetry: RecordingTelemetry;
  /** Past any fault. */
  readonly table: KeyValueTable;
  /** What the calls to the API server waited for between their tries. */
  readonly waitsMs: readonly number[];
  readonly spec: (change: Partial<ClusterSpec>) => ClusterSpec;
  /** One invocation of the loop's handler, an interval after the last one. */
  tick(loop: Loop): Promise<Summary>;
  /** The time of everything that is under way is over. */
  runOut(): void;
  record(loop: Loop): Promise<RunRecord | undefined>;
  /** The cluster's objects and the table's items. Not in it: run records, and leases, which tell what probes saw. */
  state(): Promise<unknown>;
  /** Every log line and every item. */
  told(): Promise<string>;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly spec?: Partial<ClusterSpec>;
  /** The table that passes see, and the same one past any fault. Default: in memory. */
  readonly tables?: { readonly seen: OpenTable; readonly direct: OpenTable };
}

/** The table allocates, so that every loop has something to write in its first pass. */
export async function aMisbehavingWorld({ spec = {}, tables }: WorldOptions = {}): Promise<MisbehavingWorld> {
  const clock = { nowMs: Date.parse('2026-01-01T12:00:00Z') };
  const nowMs = () => clock.nowMs;
  const { seen, direct } = tables ?? inMemory(nowMs);
  const table = direct();
  const cluster = await startMisbehavingCluster();
  const telemetry = recordingTelemetry();
  const waitsMs: number[] = [];
  const connections = new ClusterConnections({
    nowMs,
    loadKubeconfig: () => loadKubeconfigFile(cluster.kubeconfigFile),
    sleep: async (ms) => waitsMs.push(ms),
  });
  const deadlines = deadlinesThatRunOut();
  const newPassId = countedWriteIds();
  const environment: Environment = {
    nowMs,
    newPassId,
    startDeadline: deadlines.start,
    telemetry: () => telemetry,
    reportingInstance: 'test',
    table: seen,
    connect: (wanted, options) => connections.connect(wanted, options),
    resolveHost: () => async () => undefined,
  };
  const specOf = (change: Partial<ClusterSpec>) =>
    aClusterSpec({
      name: CLUSTER,
      allocator: 'table',
      kubeconfig: { file: cluster.kubeconfigFile },
      apiServers: [
        {
          address: '10.9.8.7',
          kind: 'server',
          probe: { url: `${cluster.url}/readyz`, path: '/readyz', authenticate: false },
        },
      ],
      ...spec,
      ...change,
    });
  await registerCluster(table, specOf({}));

  return {
    cluster,
    telemetry,
    table,
    waitsMs,
    spec: specOf,
    tick: (loop) => {
      clock.nowMs += specOf({}).intervalSeconds[loop] * 1000;
      const event = { 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() };
      return LOOP_HANDLERS[loop](event, { environment, getRemainingTimeInMillis: () => 60_000 });
    },
    runOut: deadlines.runOut,
    record: async (loop) => (await readRunRecord(table, CLUSTER, loop))?.record,
    state: async () => ({
      objects: await cluster.objects(),
      items: (await itemsIn(table)).filter(({ key }) => !/^(runs\/|masterleases$)/.test(key)),
    }),
    told: async () => JSON.stringify([telemetry.lines, await itemsIn(table)]),
    close: async () => {
      await connections.close();
      await cluster.stop();
    },
  };
}

function inMemory(nowMs: () => number): { readonly seen: OpenTable; readonly direct: OpenTable } {
  const own = { nowMs, newWriteId: countedWriteIds(), store: memoryStore() };
  const open: OpenTable = (deadline) => memoryTable({ ...own, ...(deadline && { deadline }) });
  return { seen: open, direct: open };
}

async function itemsIn(table: KeyValueTable): Promise<Item[]> {
  const partitions = await Promise.all(['#clusters', CLUSTER].map((partition) => table.list(partition, '')));
  return partitions.flat();
}

/** Deadlines that never come, until the test says that they all have. */
function deadlinesThatRunOut() {
  let running: AbortController[] = [];
  return {
    start: () => {
      const controller = new AbortController();
      running.push(controller);
      return { signal: controller.signal, cancel: () => {} };
    },
    runOut: () => {
      const over = running;
      running = [];
      const { signal } = startDeadline(0);
      signal.addEventListener('abort', () => {
        for (const controller of over) controller.abort(signal.reason);
      });
    },
  };
}
