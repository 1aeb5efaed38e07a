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

type Place = readonly [x: number, y: number, width: number];

interface Graph {
  readonly title: string;
  readonly at: Place;
  readonly series: readonly Series[];
  readonly percent?: boolean;
}

const GRAPHS: readonly Graph[] = parse(readFileSync(path.join(import.meta.dirname, 'dashboard.yml'), 'utf8'));

function searchOf({ metric, statistic = 'Sum', label, byType }: Series): object {
  const dimensions = [METRIC_NAMESPACE, 'service', 'loop', ...(byType ? ['type'] : [])].map((name) => `"${name}"`);
  const search = `{${dimensions.join(',')}} MetricName="${metric}" service="\${AWS::StackName}"`;
  return { expression: `SEARCH('${search}', '${statistic}', 60)`, ...(label !== undefined && { label: `${label} ` }) };
}

function widget(type: string, [x, y, width]: Place, height: number, properties: object): object {
  return { type, x, y, width, height, properties };
}

function graphWidget({ title, at, series, percent }: Graph): object {
  return widget('metric', at, 6, {
    title,
    region: '${AWS::Region}',
    view: 'timeSeries',
    ...(percent && { yAxis: { left: { min: 0, max: 100 } } }),
    metrics: series.map((one) => [searchOf(one)]),
  });
}

const alarmArn = (name: string) =>
  `arn:\${AWS::Partition}:cloudwatch:\${AWS::Region}:\${AWS::AccountId}:alarm:\${AWS::StackName}-${name}`;

/** The alarms of the dashboard. Omits the alarms of the admission webhook, because only some stacks have the webhook. */
const SHOWN_ALARMS = [
  NOTHING_RAN,
  RELEASE_FAILING,
  ...Object.keys(ALARMS).filter((name) => ALARMS[name]?.condition === undefined),
];

const WIDGETS: readonly object[] = [
  widget('alarm', [0, 0, 24], 3, { title: 'Alarms', alarms: SHOWN_ALARMS.map(alarmArn) }),
  ...GRAPHS.map(graphWidget),
  widget('log', [0, 27, 24], 8, {
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
  }),
];

export const DASHBOARD: Resources = {
  FleetDashboard: {
    Type: 'AWS::CloudWatch::Dashboard',
    Condition: 'HasDashboard',
    Properties: { DashboardName: STACK, DashboardBody: substitute(JSON.stringify({ widgets: WIDGETS })) },
  },
};
