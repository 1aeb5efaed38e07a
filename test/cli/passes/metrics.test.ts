import { createServer } from 'node:http';
import { expect, test } from '@jest/globals';
import { EXIT } from '../../../cli/errors.ts';
import { fleetMetrics } from '../../../cli/page/fleet-metrics.ts';
import { answerMonitorRequest, runMonitor, serveMonitor } from '../../../cli/passes/run-monitor.ts';
import { LOOPS } from '../../../lib/spec/cluster-spec.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  loopsOf,
  nodePorts,
} from '../../support/a-fleet-status.ts';
import { afterThisTest } from '../../support/after-this-test.ts';
import { recordingTelemetry } from '../../support/recording-telemetry.ts';
import { portOf } from '../../support/serve.ts';

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

test('without clusters, the metrics contain no values of clusters, and end with the line that OpenMetrics requires', async () => {
  expect(await samplesOf()).toEqual(['clusters_unreadable 1']);
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

test('a text from a cluster is escaped in a metric, so that the text cannot end the value of a label', async () => {
  const cluster = aClusterStatus({ name: 'a', apiServers: [anApiServer('x"} 1\nevil{a="\\')] });
  expect(await samplesOf(cluster)).toContain(
    'api_server_lease_valid{cluster="a",address="x\\"} 1\\nevil{a=\\"\\\\"} 1',
  );
});

function aMonitor() {
  const clock = { nowMs: 1_000_000, steadyMs: 0 };
  const telemetry = () => recordingTelemetry();
  const monitor = runMonitor(
    telemetry,
    () => clock.nowMs,
    () => clock.steadyMs,
  );
  const lines = async () => {
    const { text } = await monitor.metrics();
    return text.split('\n').map((line) => line.replace('kube_bootstrap_controller_', ''));
  };
  const report = (counts: Readonly<Record<string, number>>) => {
    const telemetry = monitor.telemetry({ loop: 'kubernetes-service' });
    for (const [name, by] of Object.entries(counts)) telemetry.count(name as 'passes', by);
    telemetry.flush();
  };
  const statusOf = async (url: string, method = 'GET') => (await answerMonitorRequest({ url, method }, monitor)).status;
  return { clock, monitor, lines, report, statusOf };
}

test('a process is alive while it tries to claim ticks, even if another process claims these ticks or the table does not answer', async () => {
  const { clock, monitor, statusOf } = aMonitor();
  expect(await statusOf('/healthz')).toBe(200);
  clock.steadyMs = 360_000;
  for (const loop of LOOPS) monitor.tried(loop);
  monitor.claimed('kubernetes-service', 'lost');
  monitor.claimed('system-namespaces', 'failed');
  expect(await statusOf('/healthz')).toBe(200);
});

test('a process is not alive if it did not try to claim a tick of a loop for two intervals, even if the clock is corrected meanwhile', async () => {
  const { clock, monitor, statusOf } = aMonitor();
  monitor.tried('kubernetes-service');
  clock.nowMs += 3_600_000;
  clock.steadyMs = 20_000;
  expect(monitor.stuckLoops()).toEqual([]);
  clock.steadyMs = 20_001;
  expect(monitor.stuckLoops()).toEqual(['kubernetes-service']);
  expect(await statusOf('/healthz')).toBe(503);
});

test('/readyz returns 200 while the table is reachable', async () => {
  const { monitor, statusOf } = aMonitor();
  expect(await statusOf('/readyz')).toBe(503);
  monitor.claimed('kubernetes-service', 'lost');
  expect(await statusOf('/readyz')).toBe(200);
  monitor.claimed('kubernetes-service', 'failed');
  expect(await statusOf('/readyz')).toBe(503);
});

test('the server for metrics and health checks answers an unknown path with 404, and the method POST with 405', async () => {
  const { statusOf } = aMonitor();
  expect(await statusOf('/')).toBe(404);
  expect(await statusOf('/metrics?x=1')).toBe(200);
  expect(await statusOf('/metrics', 'POST')).toBe(405);
});

test('counters of passes add up, and the counters that alarms use exist before the first pass', async () => {
  const { lines, report } = aMonitor();
  expect(await lines()).toContain('late_ticks_total{loop="kubernetes-service"} 0');
  report({ lateTicks: 2, passes: 1 });
  report({ lateTicks: 1, passes: 1, apiserver_nodeport_repair_port_errors_total: 4 });
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'late_ticks_total{loop="kubernetes-service"} 3',
      'passes_total{loop="kubernetes-service"} 2',
      'apiserver_nodeport_repair_port_errors_total{loop="kubernetes-service"} 4',
      'loop_invoked_timestamp_seconds{loop="node-port-repair"} 0',
    ]),
  );
});

test('the last fleet figures stay in the metrics for two minutes after another process has claimed the tick', async () => {
  const { clock, monitor, lines, report } = aMonitor();
  report({ clustersJudged: 200, clustersFailing: 3 });
  report({ clustersJudged: 200, clustersFailing: 1 });
  report({ clustersRegistered: 200 });
  expect(await lines()).toContain('clusters_failing 1');
  monitor.claimed('kubernetes-service', 'lost');
  clock.nowMs += 120_000;
  expect(await lines()).toContain('clusters_failing 1');
  clock.nowMs += 1;
  expect((await lines()).join()).not.toContain('clusters_failing');
});

test('during an outage of the table, the metrics still contain the last figures and the time of these figures', async () => {
  const { clock, monitor, lines, report } = aMonitor();
  report({ clustersJudged: 1, clustersFailing: 1 });
  monitor.show(aFleetStatus([aClusterStatus({ name: 'a' })]));
  clock.nowMs += 3_600_000;
  monitor.claimed('kubernetes-service', 'failed');
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'table_reachable 0',
      'clusters_failing 1',
      'figures_timestamp_seconds 1000',
      'cluster_paused{cluster="a"} 0',
      'ticks_total{loop="kubernetes-service",outcome="failed"} 1',
    ]),
  );
});

test('with too many clusters, the metrics have the figures of the fleet, but no series of single clusters', async () => {
  const { monitor, lines, report } = aMonitor();
  report({ clustersJudged: 10_000 });
  monitor.show(undefined);
  expect(await lines()).toEqual(expect.arrayContaining(['clusters_judged 10000', 'cluster_series 0']));
  expect((await lines()).join()).not.toContain('cluster="');
});

test('if the port is in use, metrics are not served, and the error contains the resolution', async () => {
  const other = createServer();
  const port = await portOf(other);
  afterThisTest(() => other.close());
  const { clock, monitor } = aMonitor();
  await expect(serveMonitor(monitor, { host: '127.0.0.1', port }, () => clock.nowMs)).rejects.toMatchObject({
    exitCode: EXIT.configuration,
    message: `Metrics cannot be served at port ${port} of 127.0.0.1 (EADDRINUSE): choose another port or address.`,
  });
});
