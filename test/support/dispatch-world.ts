import { dispatch } from '../../lib/dispatch/dispatch.ts';
import type { LoopInvocation } from '../../lib/dispatch/run-pass.ts';
import type { LoopDefinition, PassContext, PassReport } from '../../lib/loops/pass.ts';
import { CONCURRENT_PASSES, type Deadline, DispatchError } from '../../lib/runtime/deadline.ts';
import type { ClusterAccess, Environment } from '../../lib/runtime/environment.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { aClusterSpec, type SpecFields } from './a-cluster-spec.ts';
import { CONTROL_PLANE, type MemoryCluster, memoryCluster } from './memory-cluster.ts';
import { memoryStore, memoryTable } from './memory-table.ts';
import { recordingTelemetry } from './recording-telemetry.ts';

export interface StartedDeadline {
  readonly ms: number;
  readonly expire: () => void;
  cancelled: boolean;
}

export type DispatchWorld = ReturnType<typeof aDispatchWorld>;

export interface DispatchOptions {
  /** Parts that replace those of the world's environment. */
  readonly environment?: Partial<Environment>;
  /** The remaining time. Default: always one minute. */
  readonly remainingMs?: () => number;
  /** The cluster list that the process remembers. Default: that of a new process. */
  readonly memory?: LoopInvocation['memory'];
}

/** Returns a table, clusters, a clock that stands still, and deadlines that only a test ends. */
export function aDispatchWorld(overrides: Partial<Environment> = {}) {
  const clock = { nowMs: Date.parse('2026-01-01T12:00:00Z') };
  const nowMs = () => clock.nowMs;
  const store = memoryStore();
  const openTable = (deadline?: AbortSignal) => memoryTable({ nowMs, store, ...(deadline && { deadline }) });
  const table = openTable();
  const telemetry = recordingTelemetry();
  const deadlines: StartedDeadline[] = [];
  const clusters = new Map<string, MemoryCluster>();
  const clusterOf = (name: string) => {
    const cluster = clusters.get(name) ?? memoryCluster();
    clusters.set(name, cluster);
    return cluster;
  };
  let passes = 0;

  const environment: Environment = {
    nowMs,
    newPassId: () => `pass-${++passes}`,
    startDeadline: (ms): Deadline => {
      const controller = new AbortController();
      const expire = () => controller.abort(new DispatchError('DeadlineExceeded', 'the test says that time is over'));
      const started: StartedDeadline = { ms, cancelled: false, expire };
      deadlines.push(started);
      const cancel = () => {
        started.cancelled = true;
      };
      return { signal: controller.signal, cancel };
    },
    telemetry: (labels) => {
      telemetry.invocations.push(labels);
      return telemetry;
    },
    reportingInstance: 'test',
    clustersPerTick: CONCURRENT_PASSES,
    table: openTable,
    connect: async ({ name }) => ({
      kubernetes: clusterOf(name).port,
      probe: async () => ({ kind: 'silence', message: 'nothing is probed' }),
      controlPlane: CONTROL_PLANE,
    }),
    resolveHost: () => () => Promise.resolve(undefined),
    ...overrides,
  };

  return {
    environment,
    telemetry,
    table,
    clock,
    deadlines,
    /** Returns a cluster in memory, to which the environment connects. */
    cluster: (name = 'demo') => clusterOf(name),
    /** Returns a function that connects to the cluster in memory, with these parts instead of its own. */
    connecting: (parts: Partial<ClusterAccess>): Environment['connect'] => {
      return async (...args) => ({ ...(await environment.connect(...args)), ...parts });
    },
    register: async (...specs: SpecFields[]) => {
      for (const spec of specs) await registerCluster(table, aClusterSpec(spec));
    },
    recordOf: async (cluster: string, loop: Loop = 'system-namespaces') =>
      (await readRunRecord(table, cluster, loop))?.record,
    /** Invokes the function of a loop once. Default event: a request for all clusters that are due. */
    dispatch: (
      loop: LoopDefinition,
      event: unknown = {},
      { environment: changed, remainingMs = () => 60_000, memory = {} }: DispatchOptions = {},
    ) => dispatch({ environment: { ...environment, ...changed }, telemetry, remainingMs, loop, memory }, event),
    schedule: () => ({ 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() }),
  };
}

export async function aDispatchWorldOf(...specs: SpecFields[]): Promise<DispatchWorld> {
  const world = aDispatchWorld();
  await world.register(...specs);
  return world;
}

/** Returns the report of a pass that had nothing to do. */
export function aReport(overrides: Partial<PassReport> = {}): PassReport {
  return { changes: [], findings: [], counts: {}, errors: [], ...overrides };
}

type Run = (context: PassContext) => Promise<PassReport> | PassReport;

/**
 * Returns a loop, and the contexts of the passes that it has run.
 * @param script runs the pass of every cluster, or has one function for each cluster name. The pass of a cluster without a
 * function does nothing
 */
export function aLoop(script: Run | Readonly<Record<string, Run>> = {}, id: Loop = 'system-namespaces') {
  const contexts: PassContext[] = [];
  const loop: LoopDefinition = {
    id,
    run: async (context) => {
      contexts.push(context);
      const run = typeof script === 'function' ? script : script[context.spec.name];
      return (await run?.(context)) ?? aReport();
    },
  };
  return { loop, contexts, names: () => contexts.map(({ spec }) => spec.name) };
}
