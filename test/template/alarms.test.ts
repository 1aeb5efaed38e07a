import { expect, test } from '@jest/globals';
import { parameterTable } from '../../deploy/parameters.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import {
  type CounterName,
  failedPassCounter,
  findingCounter,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
  type SampleName,
} from '../../lib/telemetry/telemetry.ts';
import { filesInRepository, readInRepository } from '../support/repository.ts';
import { COMPOSITES, METRIC_ALARMS, metricsOf, nameOf, resourcesOf, STACK } from './stack-alarms.ts';

/** Every metric that the code can write. The compiler verifies that this list matches the types of lib/telemetry. */
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
  lateProbes: true,
  lateTicks: true,
  unreadableTicks: true,
  unqueuedTicks: true,
  unpublishedEvents: true,
  allocations: true,
  allocationsRefused: true,
  allocationRetries: true,
  staleClusterLists: true,
  clustersRegistered: true,
  clustersJudged: true,
  suspects: true,
  clustersOverdue: true,
  clustersFailing: true,
  clustersWithoutLiveLease: true,
  clustersPaused: true,
  clustersWithFindings: true,
  clustersWithTwoOwners: true,
  clustersWithCredentialsEnding: true,
  fullestRangeOfFleetPercent: true,
  durationMs: true,
  activeLeases: true,
  fullestRangePercent: true,
} satisfies Record<CounterName | SampleName, true>);

const named = METRIC_ALARMS.map((alarm) => [nameOf(alarm), alarm] as const);
const dashboard = resourcesOf().find(({ Type }) => Type === 'AWS::CloudWatch::Dashboard')?.Properties;
const onDashboard = [...dashboard.DashboardBody.matchAll(/MetricName=\\"(\w+)\\"/g)].map(([, name]) => name);

test.each(named)('the alarm %s uses metrics that the code or AWS writes', (_name, alarm) => {
  for (const { Namespace, MetricName, Dimensions } of metricsOf(alarm).map(({ Metric }) => Metric)) {
    if (Namespace.startsWith('AWS/')) continue;
    expect(Namespace).toBe(METRIC_NAMESPACE);
    expect(METRICS).toContain(MetricName);
    // Metrics have these dimensions: see test/telemetry/powertools.test.ts.
    expect(Dimensions.map(({ Name }) => Name)).toEqual(['service', 'loop']);
    expect(Dimensions[0]?.Value).toBe(STACK);
    expect(LOOPS).toContain(Dimensions[1]?.Value);
  }
});

test('the dashboard contains exactly the metrics that the code writes', () => {
  expect([...new Set(onDashboard)].sort()).toEqual([...METRICS].sort());
});

test('every metric is written by code in lib/', () => {
  const files = filesInRepository('lib').filter((name) => name.endsWith('.ts') && !name.startsWith('lib/telemetry'));
  const text = files.map(readInRepository).join('\n');
  const byFunction = LOOPS.flatMap((loop) => [
    findingCounter(loop, 'duplicate'),
    findingCounter(loop, 'twoOwners'),
    failedPassCounter(loop),
  ]);
  const unwritten = METRICS.filter(
    (name) =>
      !byFunction.includes(name as CounterName) && !(name in SAMPLE_UNITS) && !new RegExp(`\\b${name}\\b`).test(text),
  );
  expect(unwritten).toEqual([]);
});

test('if the admission webhook uses API Gateway instead of a function URL, an alarm watches the API', () => {
  const names = resourcesOf({ AdmissionEndpoint: 'apiGateway' }).map(({ Properties }) => Properties.AlarmName);
  expect(names).toContain(`${STACK}-admission-api-failing`);
  expect(names).not.toContain(`${STACK}-admission-url-failing`);
});

const sections = [...readInRepository('docs/runbook.md').matchAll(/^## ([a-z].+)$/gm)].map(([, title]) => title);
const all = [...METRIC_ALARMS, ...COMPOSITES];

test.each(named)(
  'the description of the alarm %s has a query, and a link to its section of the runbook',
  (name, { AlarmDescription }) => {
    expect(AlarmDescription.length).toBeLessThan(900);
    const [, section] = /\nLogs Insights: .+\nRunbook: \S+#([\w-]+)$/.exec(AlarmDescription) ?? [];
    expect(sections).toContain(section);
    expect(name).toContain(section);
  },
);

test('every section of the runbook belongs to an alarm', () => {
  const linked = all.map(({ AlarmDescription }) => AlarmDescription.replace(/^[\s\S]*#/, ''));
  expect(sections.toSorted()).toEqual([...new Set(linked)].toSorted());
});

test('every log message, parameter and error that the runbook quotes exists in the code', () => {
  const text = filesInRepository('lib', 'deploy', 'cli', 'functions')
    .filter((name) => /\.(ts|yml|yaml|json)$/.test(name))
    .map(readInRepository)
    .concat(parameterTable())
    .join('\n');
  const runbook = readInRepository('docs/runbook.md').replace(/<!-- table: alarms -->\n\n(?:\|.*\n)+/, '');
  const words = [
    ...runbook.matchAll(/`([A-Za-z][\w.]*)(?:=\w+)?`|(?<=log line )"([^"]+)"|`([a-z]+(?: [a-z]+)+)` in the log/g),
  ];
  const quoted = words.map(([, word, line, message]) => word ?? line ?? message ?? '');
  expect(quoted.length).toBeGreaterThan(30);
  expect(quoted.filter((word) => !text.includes(word))).toEqual([]);
});

test('the code writes every log message that a query of an alarm searches for', () => {
  const messages = METRIC_ALARMS.flatMap(({ AlarmDescription }) =>
    [...AlarmDescription.matchAll(/message (?:=|in \[) ?"([^"]+)"(?:, "([^"]+)")?/g)].flatMap(([, one, other]) =>
      [one, other].filter((text) => text !== undefined),
    ),
  );
  const text = filesInRepository('lib/dispatch').map(readInRepository).join('\n');
  expect(messages.length).toBeGreaterThan(5);
  expect(messages.filter((message) => !text.includes(`'${message}'`))).toEqual([]);
});
