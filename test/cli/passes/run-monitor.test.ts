import { createServer } from 'node:http';
import { expect, test } from '@jest/globals';
import { EXIT } from '../../../cli/errors.ts';
import { runMonitor } from '../../../cli/passes/run-monitor.ts';
import { answerMonitorRequest, serveMonitor } from '../../../cli/passes/serve-monitor.ts';
import { LOOPS } from '../../../lib/spec/cluster-spec.ts';
import { aClusterStatus, aFleetStatus } from '../../support/a-fleet-status.ts';
import { afterThisTest } from '../../support/after-this-test.ts';
import { recordingTelemetry } from '../../support/recording-telemetry.ts';
import { portOf } from '../../support/serve.ts';

function aMonitor() {
  const clock = { nowMs: 1_000_000, steadyMs: 0 };
  const times = { nowMs: () => clock.nowMs, steadyMs: () => clock.steadyMs };
  const monitor = runMonitor({ telemetry: () => recordingTelemetry(), ...times });
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

test('a process is alive while it tries to claim ticks, whether it wins or loses them or the table does not answer', async () => {
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

test('a process is ready while its claims reach the table', async () => {
  const { monitor, statusOf } = aMonitor();
  expect(await statusOf('/readyz')).toBe(503);
  monitor.claimed('kubernetes-service', 'lost');
  expect(await statusOf('/readyz')).toBe(200);
  monitor.claimed('kubernetes-service', 'failed');
  expect(await statusOf('/readyz')).toBe(503);
});

test('the server for metrics and health checks refuses other paths and methods', async () => {
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

test('the metrics show the fleet figures of the last count until two minutes after another process has taken over the count', async () => {
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
