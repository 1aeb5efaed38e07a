import { Gauge, type OpenMetricsContentType, Registry } from 'prom-client';
import { type ClusterStatus, type FleetStatus, HEALTHS } from '../status/cluster-status.ts';
import { successAtMs } from '../status/columns.ts';

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Metric {
  readonly help: string;
  readonly samples: (cluster: ClusterStatus) => readonly Sample[];
}

const PREFIX = 'kube_bootstrap_controller_';

const one = (value: number, labels: Sample['labels'] = {}): Sample[] => [{ labels, value }];

/** Metrics of each cluster; the label `cluster` is added. */
const METRICS: Readonly<Record<string, Metric>> = {
  cluster_info: {
    help: 'Mode, allocator and owning stack of a cluster.',
    samples: ({ mode, allocator, owner }) => one(1, { mode, allocator, stack: owner?.stack ?? '' }),
  },
  cluster_health: {
    help: 'Health of a cluster: 1 for the current one.',
    samples: ({ health }) => HEALTHS.map((each) => ({ labels: { health: each }, value: Number(each === health) })),
  },
  cluster_paused: {
    help: '1 while the passes of a cluster are paused.',
    samples: ({ paused }) => one(Number(paused !== undefined)),
  },
  cluster_generation: {
    help: 'Generation of the spec.',
    samples: ({ generation }) => one(generation),
  },
  api_server_lease_valid: {
    help: '1 while an API server has a valid lease.',
    samples: ({ apiServers }) =>
      apiServers.map(({ address, host = '', state }) => ({
        labels: { address: address ?? host },
        value: Number(state === 'active'),
      })),
  },
  loop_interval_seconds: {
    help: 'How often a loop is due.',
    samples: ({ loops }) => loops.map(({ loop, intervalSeconds }) => ({ labels: { loop }, value: intervalSeconds })),
  },
  loop_last_success_timestamp_seconds: {
    help: 'When a loop is last known to have succeeded. Passes without news are recorded once a minute.',
    samples: ({ loops }) =>
      loops.flatMap((status) => {
        const atMs = successAtMs(status);
        return atMs === undefined ? [] : one(atMs / 1000, { loop: status.loop });
      }),
  },
  loop_failures_in_a_row: {
    help: 'Passes of a loop that failed since its last success.',
    samples: ({ loops }) => loops.map(({ loop, failuresInARow }) => ({ labels: { loop }, value: failuresInARow })),
  },
  findings: {
    help: 'Findings of the last passes, by type.',
    samples: ({ findings }) =>
      [...Map.groupBy(findings, ({ type }) => type)].map(([type, found]) => ({
        labels: { type },
        value: found.length,
      })),
  },
  range_capacity: { help: 'Addresses or ports of a range.', samples: ofRanges('capacity') },
  range_used: { help: 'Addresses or ports in use.', samples: ofRanges('used') },
  range_held: { help: 'Addresses or ports held for an owner.', samples: ofRanges('held') },
  range_leaking: { help: 'Addresses or ports in use without a Service.', samples: ofRanges('leaking') },
  range_duplicates: { help: 'Addresses or ports that several Services claim.', samples: ofRanges('duplicates') },
};

function ofRanges(figure: 'capacity' | 'used' | 'held' | 'leaking' | 'duplicates'): Metric['samples'] {
  return ({ ranges }) => ranges.map((range) => ({ labels: { range: range.title }, value: range[figure] }));
}

export async function fleetMetrics(
  fleet: FleetStatus,
): Promise<{ readonly contentType: string; readonly text: string }> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const [name, { help, samples }] of Object.entries(METRICS)) {
    const all = fleet.clusters.flatMap((cluster) =>
      samples(cluster).map(({ labels, value }) => ({ labels: { cluster: cluster.name, ...labels }, value })),
    );
    const gauge = gaugeIn(registry, name, help, Object.keys(all[0]?.labels ?? {}));
    for (const { labels, value } of all) gauge.set(labels, value);
  }
  gaugeIn(registry, 'clusters_unreadable', 'Clusters whose spec cannot be read.', []).set(fleet.unreadable.length);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

function gaugeIn(
  registry: Registry<OpenMetricsContentType>,
  name: string,
  help: string,
  labelNames: readonly string[],
): Gauge {
  return new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers: [registry] });
}
