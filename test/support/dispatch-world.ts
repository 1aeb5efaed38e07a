import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { dispatch, type Summary } from '../../lib/dispatch/dispatch.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { LoopDefinition, PassReport } from '../../lib/loops/pass.ts';
import { type Deadline, DispatchError } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RunRecord, readRunRecord } from '../../lib/table/run-records.ts';
import { aClusterSpec, type SpecFields } from './a-cluster-spec.ts';
import { countedWriteIds, memoryStore, memoryTable } from './memory-table.ts';
import { CONTROL_PLANE } from './pass-context.ts';
import { type RecordingTelemetry, recordingTelemetry } from './recording-telemetry.ts';

export interface StartedDeadline {
  readonly ms: number;
  readonly expire: () => void;
  cancelled: boolean;
}

/** A table, clusters, a clock that stands still and deadlines that only a test ends. */
export interface DispatchWorld {
  readonly environment: Environment;
  readonly telemetry: RecordingTelemetry;
  readonly table: KeyValueTable;
  readonly clock: { nowMs: number };
  readonly deadlines: StartedDeadline[];
  /** What was written to each cluster, whoever wrote it. */
  readonly created: Map<string, KubernetesObject[]>;
  readonly register: (...specs: SpecFields[]) => Promise<void>;
  readonly recordOf: (cluster: string, loop?: Loop) => Promise<RunRecord | undefined>;
  /** One invocation of the function of a loop. Default event: a request for every cluster that is due. */
  readonly dispatch: (loop: LoopDefinition, event?: unknown, options?: DispatchOptions) => Promise<Summary>;
  /** The event of the schedule, now. */
  readonly schedule: () => object;
}

export interface DispatchOptions {
  /** In place of what the world has. */
  readonly environment?: Partial<Environment>;
  /** Default: always a minute. */
  readonly remainingMs?: () => number;
}

export function aDispatchWorld(overrides: Partial<Environment> = {}): DispatchWorld {
  const clock = { nowMs: Date.parse('2026-01-01T12:00:00Z') };
  const nowMs = () => clock.nowMs;
  const store = memoryStore();
  const newWriteId = countedWriteIds();
  const openTable = (deadline?: AbortSignal) =>
    memoryTable({ nowMs, newWriteId, store, ...(deadline && { deadline }) });
  const table = openTable();
  const telemetry = recordingTelemetry();
  const deadlines: StartedDeadline[] = [];
  const created = new Map<string, KubernetesObject[]>();
  let passes = 0;

  const environment: Environment = {
    nowMs,
    newPassId: () => {
      passes += 1;
      return `pass-${passes}`;
    },
    startDeadline: (ms): Deadline => {
      const controller = new AbortController();
      const started: StartedDeadline = {
        ms,
        cancelled: false,
        expire: () => {
          controller.abort(new DispatchError('DeadlineExceeded', 'the test says that time is over'));
        },
      };
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
    table: openTable,
    connect: ({ name }) => {
      const objects: KubernetesObject[] = created.get(name) ?? [];
      created.set(name, objects);
      return Promise.resolve({
        kubernetes: writeOnlyCluster(objects),
        probe: () => Promise.resolve({ kind: 'silence', message: 'nobody is asked' }),
        controlPlane: CONTROL_PLANE,
      });
    },
    resolveHost: () => () => Promise.resolve(undefined),
    ...overrides,
  };

  return {
    environment,
    telemetry,
    table,
    clock,
    deadlines,
    created,
    register: async (...specs) => {
      for (const spec of specs) await registerCluster(table, aClusterSpec(spec));
    },
    recordOf: async (cluster, loop = 'system-namespaces') => (await readRunRecord(table, cluster, loop))?.record,
    dispatch: (loop, event = {}, { environment: changed, remainingMs = () => 60_000 } = {}) =>
      dispatch(loop, event, { environment: { ...environment, ...changed }, telemetry, remainingMs }),
    schedule: () => ({ 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() }),
  };
}

/** The world with these clusters registered. */
export async function aDispatchWorldOf(...specs: SpecFields[]): Promise<DispatchWorld> {
  const world = aDispatchWorld();
  await world.register(...specs);
  return world;
}

/** Takes what is created and holds nothing else. */
function writeOnlyCluster(objects: KubernetesObject[]): ClusterPort {
  const unexpected = () => Promise.reject(new ClusterError('Rejected', 'no test asks for this'));
  return {
    get: () => Promise.resolve(undefined),
    list: () => Promise.resolve([]),
    create: (object) => {
      objects.push(object);
      return Promise.resolve({ outcome: 'created', object });
    },
    update: unexpected,
    mergePatch: () => Promise.resolve({ outcome: 'notFound' }),
    delete: unexpected,
    services: () => ({ [Symbol.asyncIterator]: () => ({ next: unexpected }) }),
    ipAddresses: () => ({ [Symbol.asyncIterator]: () => ({ next: unexpected }) }),
  };
}

/** The report of a pass that had nothing to do. */
export function aReport(overrides: Partial<PassReport> = {}): PassReport {
  return { changes: [], findings: [], counts: {}, errors: [], ...overrides };
}
