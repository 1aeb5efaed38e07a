import { expect, test } from '@jest/globals';
import { fleetMetrics } from '../../../cli/page/fleet-metrics.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  loopsOf,
  nodePorts,
} from '../../support/a-fleet-status.ts';

const unreadable = [{ name: 'broken', message: 'a later version wrote it' }];

async function samplesOf(...clusters: Parameters<typeof aFleetStatus>[0]): Promise<string[]> {
  const { text } = await fleetMetrics(aFleetStatus(clusters, { unreadable }));
  return text
    .split('\n')
    .flatMap((line) => (line.startsWith('kube_') ? line.slice('kube_bootstrap_controller_'.length) : []));
}

test('the metrics of a cluster have the values of its status', async () => {
  const cluster = aClusterStatus({
    name: 'a',
    health: 'unhealthy',
    apiServers: [anApiServer('192.0.2.1'), anApiServer('192.0.2.2', { state: 'expired' })],
    loops: loopsOf({ failuresInARow: 2, lastSuccessAtMs: 1_500 }).slice(0, 1),
    findings: [aFinding()],
    findingCounts: { duplicate: 101, leak: 1 },
    ranges: [nodePorts()],
  });

  expect(await samplesOf(cluster)).toEqual(
    expect.arrayContaining([
      'cluster_info{cluster="a",mode="enforce",allocator="table",stack="kube-bootstrap-controller-prod"} 1',
      'cluster_health{cluster="a",health="unhealthy"} 1',
      'cluster_health{cluster="a",health="good"} 0',
      'cluster_paused{cluster="a"} 0',
      'api_server_lease_valid{cluster="a",address="192.0.2.1"} 1',
      'api_server_lease_valid{cluster="a",address="192.0.2.2"} 0',
      'loop_interval_seconds{cluster="a",loop="system-namespaces"} 60',
      'loop_last_success_timestamp_seconds{cluster="a",loop="system-namespaces"} 1.5',
      'loop_failures_in_a_row{cluster="a",loop="system-namespaces"} 2',
      'findings{cluster="a",type="duplicate"} 101',
      'findings{cluster="a",type="leak"} 1',
      `range_capacity{cluster="a",range="node ports"} ${nodePorts().capacity}`,
      `range_used{cluster="a",range="node ports"} ${nodePorts().used}`,
      'clusters_unreadable 1',
    ]),
  );
});

test('without clusters, the metrics of each cluster have no values', async () => {
  expect(await samplesOf()).toEqual(['clusters_unreadable 1']);
});

test('the metrics end with the last line that OpenMetrics requires', async () => {
  const { contentType, text } = await fleetMetrics(aFleetStatus([]));
  expect(contentType).toContain('application/openmetrics-text');
  expect(text).toMatch(/# EOF\n$/);
});

test.each([
  ['good', 5],
  ['failing', 1],
] as const)(
  'if a loop in the state %s has a recorded success at 1 s and last ran at 5 s, the metric of its last success is %d s',
  async (state, seconds) => {
    const loops = loopsOf({ state, lastSuccessAtMs: 1_000, lastRanAtMs: 5_000 });
    expect(await samplesOf(aClusterStatus({ name: 'a', loops }))).toContain(
      `loop_last_success_timestamp_seconds{cluster="a",loop="system-namespaces"} ${seconds}`,
    );
  },
);

test('the text of a cluster in a metric is escaped, so that it cannot end the value of the label', async () => {
  const cluster = aClusterStatus({ name: 'a', apiServers: [anApiServer('x"} 1\nevil{a="\\')] });
  expect(await samplesOf(cluster)).toContain(
    'api_server_lease_valid{cluster="a",address="x\\"} 1\\nevil{a=\\"\\\\"} 1',
  );
});
