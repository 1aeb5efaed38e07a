import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { LOOPS } from '../lib/spec/cluster-spec.ts';
import { METRIC_NAMESPACE } from '../lib/telemetry/telemetry.ts';
import { ALARMS, NOTHING_RAN, RELEASE_FAILING } from './alarm-list.ts';
import { type Resources, STACK, substitute } from './cloudformation.ts';

interface Series {
  readonly metric: string;
  readonly statistic?: string;
  readonly label?: string;
  readonly byType?: boolean;
}

interface Graph {
  readonly title: string;
  readonly at: readonly [x: number, y: number, width: number];
  readonly series: readonly Series[];
  readonly percent?: boolean;
}

const GRAPHS: readonly Graph[] = parse(readFileSync(path.join(import.meta.dirname, 'dashboard.yml'), 'utf8'));

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

/** The alarms of the dashboard. Omits those of the admission webhook, because only stacks with the webhook have them. */
const SHOWN_ALARMS = [
  NOTHING_RAN,
  RELEASE_FAILING,
  ...Object.keys(ALARMS).filter((name) => ALARMS[name]?.condition === undefined),
];

const WIDGETS: readonly object[] = [
  {
    type: 'alarm',
    x: 0,
    y: 0,
    width: 24,
    height: 3,
    properties: { title: 'Alarms', alarms: SHOWN_ALARMS.map(alarmArn) },
  },
  ...GRAPHS.map(graphWidget),
  {
    type: 'log',
    x: 0,
    y: 27,
    width: 24,
    height: 8,
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
