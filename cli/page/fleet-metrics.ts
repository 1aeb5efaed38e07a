import { Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import {
  type ClusterStatus,
  type FleetStatus,
  HEALTHS,
  type LoopStatus,
  wholeRanges,
} from '../status/cluster-status.ts';
import { successAtMs } from '../status/columns.ts';

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

type SamplesOf = (cluster: ClusterStatus) => readonly Sample[];

export const PREFIX = 'kube_bootstrap_controller_';

const one = (value: number, labels: Sample['labels'] = {}): Sample[] => [{ labels, value }];

/** The metrics of each cluster with their help; the label `cluster` is added. */
const METRICS: Readonly<Record<string, readonly [help: string, samplesOf: SamplesOf]>> = {
  cluster_info: [
    'Mode, allocator and owning stack of a cluster.',
    ({ mode, allocator, owner }) => one(1, { mode, allocator, stack: owner?.stack ?? '' }),
  ],
  cluster_health: [
    'Health of a cluster: 1 for the current one.',
    ({ health }) => HEALTHS.map((each) => ({ labels: { health: each }, value: Number(each === health) })),
  ],
  cluster_paused: ['1 while the passes of a cluster are paused.', ({ paused }) => one(Number(paused !== undefined))],
  cluster_generation: ['Generation of the spec.', ({ generation }) => one(generation)],
  api_server_lease_valid: [
    '1 while an API server has a valid lease.',
    ({ apiServers }) =>
      apiServers.flatMap(({ address, host = '', state }) =>
        one(Number(state === 'active'), { address: address ?? host }),
      ),
  ],
  loop_interval_seconds: ['How often a loop is due.', ofLoops(({ intervalSeconds }) => intervalSeconds)],
  loop_last_success_timestamp_seconds: [
    'When a loop is last known to have succeeded, or 0 if it never did. Passes without news are recorded once a minute.',
    ofLoops((status) => (successAtMs(status) ?? 0) / 1000),
  ],
  loop_failures_in_a_row: [
    'Passes of a loop that failed since its last success.',
    ofLoops(({ failuresInARow }) => failuresInARow),
  ],
  findings: [
    'Findings of the last passes, by type.',
    ({ findingCounts }) => Object.entries(findingCounts).flatMap(([type, count]) => one(count, { type })),
  ],
  range_capacity: ['Addresses or ports of a range.', ofRanges('capacity')],
  range_used: ['Addresses or ports in use.', ofRanges('used')],
  range_held: ['Addresses or ports held for an owner.', ofRanges('held')],
  range_leaking: ['Addresses or ports in use without a Service.', ofRanges('leaking')],
};

function ofLoops(figure: (status: LoopStatus) => number): SamplesOf {
  return ({ loops }) => loops.map((status) => ({ labels: { loop: status.loop }, value: figure(status) }));
}

/** Returns the figure of each range. For a family with several ServiceCIDRs, returns only the sum of their figures. */
function ofRanges(figure: 'capacity' | 'used' | 'held' | 'leaking'): SamplesOf {
  return (cluster) => wholeRanges(cluster).map((range) => ({ labels: { range: range.title }, value: range[figure] }));
}

export async function fleetMetrics(fleet: FleetStatus) {
  const registry = newRegistry();
  addClusterMetrics(registry, fleet);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

export function newRegistry(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

export function addClusterMetrics(registry: Registry<OpenMetricsContentType>, fleet: FleetStatus): void {
  const gauge = (name: string, help: string, labelNames: readonly string[]) =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers: [registry] });
  for (const [name, [help, samplesOf]] of Object.entries(METRICS)) {
    const all = fleet.clusters.flatMap((cluster) =>
      samplesOf(cluster).map(({ labels, value }) => ({ labels: { cluster: cluster.name, ...labels }, value })),
    );
    const metric = gauge(name, help, Object.keys(all[0]?.labels ?? { cluster: '' }));
    for (const { labels, value } of all) metric.set(labels, value);
  }
  gauge('clusters_unreadable', 'Clusters whose spec cannot be read.', []).set(fleet.unreadable.length);
}
