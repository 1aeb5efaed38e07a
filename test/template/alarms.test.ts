import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import {
  type CounterName,
  failedPassCounter,
  findingCounter,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
  type SampleName,
} from '../../lib/telemetry/telemetry.ts';

const repository = path.join(import.meta.dirname, '..', '..');

/** Every metric that the code may write: the compiler holds this list and the types of lib/telemetry together. */
const METRICS = Object.keys({
  apiserver_clusterip_repair_ip_errors_total: true,
  apiserver_clusterip_repair_reconcile_errors_total: true,
  apiserver_nodeport_repair_port_errors_total: true,
  apiserver_nodeport_repair_reconcile_errors_total: true,
  findings: true,
  passes: true,
  failures: true,
  eventsDropped: true,
  credentialsEnding: true,
  clockSkewed: true,
  lateTicks: true,
  unreadableTicks: true,
  unqueuedTicks: true,
  allocations: true,
  allocationsRefused: true,
  allocationRetries: true,
  clustersRegistered: true,
  clustersOverdue: true,
  clustersFailing: true,
  clustersWithoutLiveLease: true,
  clustersPaused: true,
  durationMs: true,
  leasesHeld: true,
  fullestRangePercent: true,
} satisfies Record<CounterName | SampleName, true>);

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}

interface Alarm extends Metric {
  readonly AlarmName: string;
  readonly AlarmDescription: string;
  readonly Metrics?: readonly { readonly MetricStat?: { readonly Metric: Metric } }[];
}

const alarms: Alarm[] = Object.values(parse(read('deploy/alarms.yml')).Resources).map(
  (resource) => (resource as { Properties: Alarm }).Properties,
);
const dashboard = read('deploy/dashboard.yml');

function read(file: string): string {
  return readFileSync(path.join(repository, file), 'utf8');
}

function metricsOf(alarm: Alarm): readonly Metric[] {
  return alarm.Metrics?.flatMap(({ MetricStat }) => (MetricStat === undefined ? [] : [MetricStat.Metric])) ?? [alarm];
}

const onDashboard = [...dashboard.matchAll(/MetricName=\\"(\w+)\\"/g)].map(([, name]) => name);

describe('what is watched', () => {
  test.each(alarms.map((alarm) => [alarm.AlarmName.replace(/^.*\}-/, ''), alarm] as const))(
    'the alarm %s is about metrics that the code writes, of one of its loops',
    (_name, alarm) => {
      for (const { Namespace, MetricName, Dimensions } of metricsOf(alarm)) {
        expect(Namespace).toBe(METRIC_NAMESPACE);
        expect(METRICS).toContain(MetricName);
        expect(LOOPS).toContain(Dimensions.find(({ Name }) => Name === 'loop')?.Value);
      }
    },
  );

  test('every metric that the code writes is on the dashboard, and no other', () => {
    expect([...new Set(onDashboard)].sort()).toEqual([...METRICS].sort());
  });

  test('every metric of an alarm is on the dashboard', () => {
    for (const { MetricName } of alarms.flatMap(metricsOf)) expect(onDashboard).toContain(MetricName);
  });

  test('every metric is written somewhere in lib/', () => {
    const files = readdirSync(path.join(repository, 'lib'), { recursive: true, encoding: 'utf8' });
    const sources = files.filter((name) => name.endsWith('.ts') && !name.startsWith('telemetry'));
    const text = sources.map((name) => read(path.join('lib', name))).join('\n');
    const byFunction = LOOPS.flatMap((loop) => [
      findingCounter(loop, 'duplicate').name,
      findingCounter(loop, 'twoOwners').name,
      failedPassCounter(loop),
    ]);
    const unwritten = METRICS.filter(
      (name) =>
        !byFunction.includes(name as CounterName) && !(name in SAMPLE_UNITS) && !new RegExp(`\\b${name}\\b`).test(text),
    );
    expect(unwritten).toEqual([]);
  });

  test.each([
    ['cluster-ip-repair', ['duplicate', 'outOfRange', 'invalid', 'heldByAnother']],
    ['node-port-repair', ['duplicate', 'outOfRange', 'heldByAnother']],
    ['kubernetes-service', ['twoOwners']],
  ] as const)('findings of %s that need attention raise an alarm under the counter that counts them', (loop, types) => {
    const watched = alarms
      .flatMap(metricsOf)
      .map(({ MetricName, Dimensions }) => [MetricName, ...Dimensions.map(({ Value }) => Value)]);
    for (const type of types) {
      expect(watched).toContainEqual([findingCounter(loop, type).name, expect.anything(), loop, type]);
    }
  });

  test.each(LOOPS)('the silence of %s is an alarm', (loop) => {
    const silence = alarms.filter((alarm) => alarm.AlarmName.endsWith(`nothing-ran-${loop}`));
    expect(silence).toMatchObject([{ MetricName: 'passes', Statistic: 'SampleCount', TreatMissingData: 'breaching' }]);
  });
});

describe('the description of an alarm has', () => {
  const sections = [...read('docs/runbook.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title);

  test.each(alarms.map((alarm) => [alarm.AlarmName.replace(/^.*\}-/, ''), alarm] as const))(
    '%s: a query, and a link to its section of the runbook',
    (name, { AlarmDescription }) => {
      expect(AlarmDescription.length).toBeLessThan(900);
      const [, section] = /Logs Insights: .+ Runbook: \S+#([\w-]+)$/.exec(AlarmDescription.trim()) ?? [];
      expect(sections).toContain(section);
      expect(name.replace(/^nothing-ran-.*/, 'nothing-ran')).toBe(section);
    },
  );

  test('the runbook has no section without an alarm', () => {
    const linked = alarms.map(({ AlarmDescription }) => AlarmDescription.replace(/^[\s\S]*#/, '').trim());
    expect(sections.toSorted()).toEqual([...new Set(linked)].toSorted());
  });

  test('messages that queries look for are messages that the code writes', () => {
    const messages = alarms.flatMap(({ AlarmDescription }) =>
      [...AlarmDescription.matchAll(/message = "([^"]+)"/g)].map(([, text]) => text),
    );
    const text = readdirSync(path.join(repository, 'lib', 'dispatch'))
      .map((name) => read(`lib/dispatch/${name}`))
      .join('\n');
    for (const message of messages) expect(text).toContain(`'${message}'`);
  });
});

test('metrics have the dimensions that alarms ask for', async () => {
  const program = `
    import { powertoolsTelemetry } from './lib/telemetry/powertools.ts';
    const telemetry = powertoolsTelemetry({ loop: 'kubernetes-service' }, { clusterDimension: true });
    telemetry.count('clustersOverdue', 1);
    telemetry.count('findings', 1, { type: 'twoOwners', cluster: 'demo' });
    telemetry.flush();
  `;
  const args = ['--input-type=module-typescript', '--eval', program];
  const env = { ...process.env, POWERTOOLS_SERVICE_NAME: 'a-stack' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repository, env });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const written = lines.map((line) =>
    line._aws.CloudWatchMetrics[0].Dimensions[0].map((name: string) => `${name} ${line[name]}`),
  );
  expect(written).toContainEqual(['service a-stack', 'loop kubernetes-service']);
  expect(written).toContainEqual(['service a-stack', 'loop kubernetes-service', 'type twoOwners']);
  const asked = alarms.flatMap(metricsOf).map(({ Dimensions }) => Dimensions.map(({ Name }) => Name).join());
  expect([...new Set(asked)].sort()).toEqual(['service,loop', 'service,loop,type']);
});
