import { expect, test } from '@jest/globals';
import { addressesIn, ENDPOINTS_REF, type EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { ClusterError, type ClusterPort, type Prober } from '../../lib/kubernetes/cluster-port.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { LEASES } from '../../lib/table/leases.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { A, B, READY, SILENT } from '../support/endpoints-world.ts';
import { quantile } from '../support/fleet-model.ts';
import { memoryQueue } from '../support/memory-queue.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';
import { seededPick } from '../support/ranges.ts';

type Fault = 'api' | 'table' | 'all';

const NAMES = Array.from({ length: 16 }, (_, index) => `c-${index}`);
const HOUR_SECONDS = 3_600;

/**
 * Simulates 16 clusters in which one pass in three fails and the second of two API servers crashes. Returns for each cluster
 * after how many seconds the crashed server is no longer published.
 */
async function secondsUntilRemoved(faults: readonly Fault[], seed: number): Promise<number[]> {
  const pick = seededPick(seed);
  const crashed = { is: false };
  const failing = new Map<string, Fault>();
  const { queue, receive } = memoryQueue(() => world.clock.nowMs);
  const openTable = (table: KeyValueTable): KeyValueTable => ({
    ...table,
    get: async (cluster, key) => {
      if (key === LEASES && failing.get(cluster) === 'table') throw new TableError('Unavailable', 'the table is lossy');
      return table.get(cluster, key);
    },
  });
  const world = aDispatchWorld({
    stack: 'prod',
    tickQueue: queue,
    table: () => openTable(world.table),
    connect: async ({ name }) => {
      const fault = crashed.is && pick(3) === 0 ? faults[pick(faults.length)] : undefined;
      if (fault === undefined) failing.delete(name);
      else failing.set(name, fault);
      const { port } = world.cluster(name);
      const probe: Prober = async ({ url }) => (fault === 'all' || (crashed.is && url.includes(B)) ? SILENT : READY);
      const kubernetes = fault === 'api' || fault === 'all' ? unreached(port) : port;
      return { kubernetes, probe, controlPlane: CONTROL_PLANE };
    },
  });
  await world.register(...NAMES.map((name) => ({ name, apiServers: [aServer(A), aServer(B)] })));

  const published = (name: string) => addressesIn(world.cluster(name).find<EndpointsObject>(ENDPOINTS_REF));
  const removedAfter = new Map<string, number>();
  for (let second = -120; removedAfter.size < NAMES.length && second < HOUR_SECONDS; second += 1) {
    crashed.is = second >= 0;
    if (second % 60 === 0) await world.dispatch(kubernetesService, world.schedule());
    const events = receive();
    for (const event of events) await world.dispatch(kubernetesService, event);
    const left = NAMES.filter((name) => crashed.is && events.length > 0 && !removedAfter.has(name));
    for (const name of left) if (!published(name).includes(B)) removedAfter.set(name, second);
    world.clock.nowMs += 1_000;
  }
  return NAMES.map((name) => removedAfter.get(name) ?? Number.POSITIVE_INFINITY);
}

function unreached(port: ClusterPort): ClusterPort {
  const fail = () => Promise.reject(new ClusterError('Unavailable', 'the API server gives no answer'));
  return { ...port, get: fail, list: fail };
}

const FIRST_SEEDS = [1, 2, 3, 4];

test.each<{ readonly what: string; readonly faults: readonly Fault[]; readonly p95: number; readonly worst: number }>([
  { what: 'because calls to the API server fail, although probes are answered', faults: ['api'], p95: 40, worst: 60 },
  { what: 'because calls to the table fail', faults: ['table'], p95: 60, worst: 80 },
  {
    what: 'because calls to the API server, to the table, or all calls and probes fail',
    faults: ['api', 'table', 'all'],
    p95: 60,
    worst: 90,
  },
])(
  'if a third of the passes fail $what, a crashed API server is removed within $p95 s in 95% of cases and always within $worst s',
  async ({ faults, p95, worst }) => {
    const seconds = (await Promise.all(FIRST_SEEDS.map((seed) => secondsUntilRemoved(faults, seed)))).flat();
    expect(quantile(seconds, 0.95)).toBeLessThanOrEqual(p95);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(worst);
  },
);
