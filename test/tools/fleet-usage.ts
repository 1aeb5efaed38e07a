import { jest } from '@jest/globals';
import type { IPAddressRecord, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import type { ClusterAccess, Environment } from '../../lib/runtime/environment.ts';
import { type ClusterSpec, LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { storedSize } from '../../lib/table/stored-item.ts';
import { powertoolsTelemetry } from '../../lib/telemetry/powertools.ts';
import { LOOP_DEFINITIONS } from '../../local/loop-handlers.ts';
import { COUNTED_SECONDS, type Fleet, type Usage } from '../../tools/cost-calculation.ts';
import { withAddresses } from '../repair/services.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { memoryQueue } from '../support/memory-queue.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';

const STACK = 'kube-bootstrap-controller-prod';
const TICK_SECONDS = 10;
/** The time after which every loop has run and its items exist. */
const WARM_UP_SECONDS = COUNTED_SECONDS;

type Count = (what: keyof Usage, by: number) => void;

/** Counts the usage of each loop of a healthy fleet in `COUNTED_SECONDS`, with real passes and a table in memory. */
export async function countUsage(fleet: Fleet): Promise<ReadonlyMap<Loop, Usage>> {
  const { clusters, servers, services, interval = TICK_SECONDS } = fleet;
  const world = aDispatchWorld();
  const { clock } = world;
  const specs = specsOf(clusters, servers, interval);
  await world.register(...specs);
  const loops = LOOPS.map((id) => {
    const loop = LOOP_DEFINITIONS[id];
    const usage = noUsage();
    const count: Count = (what, by) => {
      usage[what] += by;
    };
    const { queue, receive } = memoryQueue(() => clock.nowMs);
    const accesses = new Map(specs.map(({ name }) => [name, healthyCluster(services, count)]));
    const environment: Environment = {
      ...world.environment,
      stack: STACK,
      clustersPerTick: fleet.clustersPerTick ?? 16,
      telemetry: powertoolsTelemetry,
      table: (deadline) => metered(world.environment.table(deadline), count),
      tickQueue: {
        send: (messages, signal) => {
          count('messages', messages.length);
          count('sends', Math.ceil(messages.length / 10));
          return queue.send(messages, signal);
        },
      },
      connect: async ({ name }) => {
        count('passes', 1);
        return accesses.get(name) ?? Promise.reject(new Error(name));
      },
    };
    const handler = loopHandler(loop);
    const invoke = async (event: object) => {
      count('invocations', 1);
      await handler(event, { environment, getRemainingTimeInMillis: () => 50_000, awsRequestId: REQUEST_ID });
    };
    return { id, usage, series: new Set<string>(), receive, invoke, count };
  });

  const startMs = clock.nowMs;
  for (let second = 0; second < WARM_UP_SECONDS + COUNTED_SECONDS; second += TICK_SECONDS) {
    clock.nowMs = startMs + second * 1000;
    if (second === WARM_UP_SECONDS) for (const { usage } of loops) Object.assign(usage, noUsage());
    for (const { id, series, receive, invoke, count } of loops) {
      const write = jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
        count('logBytes', Buffer.byteLength(text));
        for (const name of seriesIn(String(text))) series.add(name);
        return true;
      });
      try {
        if (second % Math.max(60, SCHEDULE_SECONDS[id]) === 0) {
          await invoke({ 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() });
        }
        for (const event of receive()) await invoke(event);
      } finally {
        write.mockRestore();
      }
    }
  }
  return new Map(loops.map(({ id, usage, series }) => [id, { ...usage, metricSeries: series.size }]));
}

const REQUEST_ID = '00000000-0000-4000-8000-000000000000';

function noUsage(): Usage {
  return {
    ...{ invocations: 0, passes: 0, messages: 0, sends: 0 },
    ...{ readUnits: 0, writeUnits: 0, kubernetesCalls: 0, logBytes: 0, metricSeries: 0 },
  };
}

function specsOf(clusters: number, servers: number, interval: number): ClusterSpec[] {
  const apiServers = Array.from({ length: servers }, (_, index) => aServer(`10.20.0.${index + 1}`));
  return Array.from({ length: clusters }, (_, index) => {
    const name = `prod-us-east-1-${String(index).padStart(5, '0')}`;
    return aClusterSpec({
      ...{ name, apiServers, serviceClusterIPRanges: ['10.96.0.0/16'] },
      kubeconfig: { secretsManager: `kube-bootstrap-controller/prod/${name}` },
      endpoints: { leaseSeconds: 1.5 * interval },
      intervalSeconds: { 'kubernetes-service': interval },
    });
  });
}

function healthyCluster(services: number, count: Count): ClusterAccess {
  const { port } = memoryCluster();
  const counted = <Call extends (...args: never[]) => unknown>(call: Call): Call =>
    ((...args) => {
      count('kubernetesCalls', 1);
      return call(...args);
    }) as Call;
  const all = Array.from({ length: services }, (_, index) => aService(index, services));
  return {
    kubernetes: {
      ...{ get: counted(port.get), list: counted(port.list), create: counted(port.create) },
      ...{ update: counted(port.update), mergePatch: counted(port.mergePatch), delete: counted(port.delete) },
      services: counted(async function* () {
        yield all;
      }),
      ipAddresses: counted(async function* () {
        yield all.map(anIpAddress);
      }),
      servedAtMs: () => undefined,
      allows: counted(async () => true),
    },
    probe: counted(async () => ({ kind: 'status', status: 200, body: 'ok' })),
    controlPlane: CONTROL_PLANE,
  };
}

/** Returns a Service with an address anywhere in the /16, like the choice of an API server. */
function aService(index: number, services: number): ServiceClaim {
  const at = 65_534 - index * Math.floor(65_000 / services);
  return withAddresses(`service-${index}`, `10.96.${at >> 8}.${at & 255}`);
}

function anIpAddress({ clusterIP, namespace, name, uid }: ServiceClaim): IPAddressRecord {
  const parent = { group: '', resource: 'services', namespace, name };
  const labels = { family: 'IPv4', managedBy: 'ipallocator.k8s.io' };
  return { name: clusterIP, uid, resourceVersion: '1', createdAtMs: 0, ...labels, parent };
}

/** Returns the names of the metrics in a line of CloudWatch's embedded format. */
function seriesIn(line: string): string[] {
  const { _aws } = JSON.parse(line) as { _aws?: { CloudWatchMetrics: { Metrics: { Name: string }[] }[] } };
  return _aws?.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name)) ?? [];
}

const KB = 1024;

/** Counts capacity as in https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html */
export function metered(table: KeyValueTable, count: Count): KeyValueTable {
  const countReads = (items: readonly Item[]) => {
    const bytes = items.reduce((sum, item) => sum + billedBytes(item), 0);
    count('readUnits', Math.max(1, Math.ceil(bytes / (4 * KB))));
  };
  const countWrite = (item: Item) => count('writeUnits', Math.ceil(billedBytes(item) / KB));
  const get: KeyValueTable['get'] = async (cluster, key) => {
    const item = await table.get(cluster, key);
    countReads(item === undefined ? [] : [item]);
    return item;
  };
  return {
    get,
    getAll: (keys) => Promise.all(keys.map(({ cluster, key }) => get(cluster, key))),
    list: async (cluster, prefix) => {
      const items = await table.list(cluster, prefix);
      countReads(items);
      return items;
    },
    put: async (content, previous) => {
      const result = await table.put(content, previous);
      if (result.outcome === 'won') countWrite(result.item);
      return result;
    },
  };
}

/** Returns the billed size of an item, including its write id and all ids of earlier writes that it keeps. */
function billedBytes({
  cluster,
  key,
  value,
  version,
  schema,
  updatedAtMs,
  expiresAtMs,
  earlierWrites: earlier = new Uint8Array(),
}: Item): number {
  const times = {
    updatedAt: new Date(updatedAtMs).toISOString(),
    ...(expiresAtMs && { expiresAtMs, ttl: expiresAtMs / 1000 }),
  };
  const writesKept = key.startsWith('runs/') ? 8 : 64;
  const earlierWrites = new Uint8Array(cluster.startsWith('#') ? earlier.length : writesKept * 6);
  return storedSize({ cluster, key, value, writeId: REQUEST_ID, earlierWrites, version, schema, ...times });
}
