import { LOOPS } from '../lib/cluster/cluster-spec.ts';
import { METRIC_NAMESPACE } from '../lib/telemetry/telemetry.ts';
import { ALARMS, NOTHING_RAN, RELEASE_FAILING } from './alarm-list.ts';
import { type Resources, STACK, substitute } from './cloudformation.ts';

interface Series {
  readonly metric: string;
  readonly statistic?: 'Maximum' | 'Sum' | 'p99';
  readonly label?: string;
  readonly byType?: true;
}

interface Graph {
  readonly title: string;
  readonly at: readonly [x: number, y: number, width: number];
  readonly series: readonly Series[];
  readonly percent?: true;
}

const highest = (metric: string, label: string): Series => ({ metric, statistic: 'Maximum', label });
const count = (metric: string, label?: string): Series => ({ metric, ...(label !== undefined && { label }) });

/** Searches find every loop and type. */
const GRAPHS: readonly Graph[] = [
  {
    title: 'Unhealthy clusters',
    at: [0, 3, 12],
    series: [
      count('clustersOverdue', 'overdue'),
      count('clustersFailing', 'failing'),
      count('clustersWithoutLiveLease', 'no valid lease'),
      count('clustersWithFindings', 'findings'),
      count('clustersWithTwoOwners', 'two owners'),
      count('clustersWithCredentialsEnding', 'credentials ending'),
    ],
  },
  {
    title: 'Clusters: registered, judged, paused',
    at: [12, 3, 6],
    series: [
      highest('clustersRegistered', 'registered'),
      count('clustersJudged', 'judged'),
      count('clustersPaused', 'paused'),
    ],
  },
  { title: 'Valid leases', at: [18, 3, 6], series: [{ metric: 'activeLeases', statistic: 'Maximum' }] },
  { title: 'Passes', at: [0, 9, 8], series: [count('passes')] },
  {
    title: 'Failed passes',
    at: [8, 9, 8],
    series: [
      count('failures'),
      count('apiserver_clusterip_repair_reconcile_errors_total'),
      count('apiserver_nodeport_repair_reconcile_errors_total'),
    ],
  },
  { title: 'Duration of a pass, p99', at: [16, 9, 8], series: [{ metric: 'durationMs', statistic: 'p99' }] },
  {
    title: 'Findings, by type',
    at: [0, 15, 12],
    series: [
      { metric: 'apiserver_clusterip_repair_ip_errors_total', byType: true, label: 'cluster IP' },
      { metric: 'apiserver_nodeport_repair_port_errors_total', byType: true, label: 'node port' },
      { metric: 'findings', byType: true },
    ],
  },
  {
    title: 'Fullest range, per cent',
    at: [12, 15, 6],
    series: [{ metric: 'fullestRangePercent', statistic: 'Maximum' }, highest('fullestRangeOfFleetPercent', 'fleet')],
    percent: true,
  },
  {
    title:
      'Ticks late, unreadable, not queued; suspects; probes late; events dropped; credentials ending; clocks skewed',
    at: [18, 15, 6],
    series: [
      count('lateTicks', 'late ticks'),
      count('lateProbes', 'late probes'),
      count('unreadableTicks', 'unreadable'),
      count('unqueuedTicks', 'not queued'),
      count('suspects', 'suspects'),
      count('eventsDropped', 'events dropped'),
      count('unpublishedEvents', 'events not published'),
      count('credentialsEnding', 'credentials ending'),
      count('clockSkewed', 'clock skewed'),
    ],
  },
  {
    title: 'Allocations: done, refused, retried',
    at: [0, 21, 24],
    series: [
      count('allocations', 'done'),
      { metric: 'allocationsRefused', byType: true, label: 'refused' },
      count('allocationRetries', 'retried'),
    ],
  },
];

function searchOf({ metric, statistic = 'Sum', label, byType }: Series): object {
  const dimensions = [METRIC_NAMESPACE, 'service', 'loop', ...(byType ? ['type'] : [])].map((name) => `"${name}"`);
  const search = `{${dimensions.join(',')}} MetricName="${metric}" service="\${AWS::StackName}"`;
  return { expression: `SEARCH('${search}', '${statistic}', 60)`, ...(label !== undefined && { label: `${label} ` }) };
}

function graphWidget({ title, at: [x, y, width], series, percent }: Graph): object {
  const properties = {
    title,
    region: '${AWS::Region}',
    view: 'timeSeries',
    ...(percent && { yAxis: { left: { min: 0, max: 100 } } }),
    metrics: series.map((one) => [searchOf(one)]),
  };
  return { type: 'metric', x, y, width, height: 6, properties };
}

const alarmArn = (name: string) =>
  `arn:\${AWS::Partition}:cloudwatch:\${AWS::Region}:\${AWS::AccountId}:alarm:\${AWS::StackName}-${name}`;

/** The alarms of the admission webhook exist only with it. */
const SHOWN_ALARMS = [
  NOTHING_RAN,
  RELEASE_FAILING,
  ...Object.keys(ALARMS).filter((name) => ALARMS[name]?.condition === undefined),
];

const WIDGETS: readonly object[] = [
  {
    ...{ type: 'alarm', x: 0, y: 0, width: 24, height: 3 },
    properties: { title: 'Alarms', alarms: SHOWN_ALARMS.map(alarmArn) },
  },
  ...GRAPHS.map(graphWidget),
  {
    ...{ type: 'log', x: 0, y: 27, width: 24, height: 8 },
    properties: {
      title: 'Passes that changed, found or failed something',
      region: '${AWS::Region}',
      view: 'table',
      query: [
        ...LOOPS.map((loop) => `SOURCE '/aws/lambda/\${AWS::StackName}-${loop}'`),
        "filter message in ['pass succeeded', 'pass failed']",
        'display @timestamp, level, loop, cluster, message, findings.0, errors.0, changes.0, wouldWrite.0',
        'sort @timestamp desc',
        'limit 100',
      ].join(' | '),
    },
  },
];

export const DASHBOARD: Resources = {
  FleetDashboard: {
    Type: 'AWS::CloudWatch::Dashboard',
    Condition: 'HasDashboard',
    Properties: { DashboardName: STACK, DashboardBody: substitute(JSON.stringify({ widgets: WIDGETS })) },
  },
};
