import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import { METRIC_NAMESPACE } from '../lib/telemetry/telemetry.ts';
import {
  type Fields,
  pascalCase,
  type Resource,
  type Resources,
  ref,
  STACK,
  substitute,
  whether,
} from './cloudformation.ts';

export const NOTHING_RAN = 'nothing-ran';
const TOPIC = [whether('HasAlarmTopic', ref('AlarmTopicArn'))];

interface Alarm {
  /** What is wrong, as one sentence. */
  readonly description: string;
  /** The Logs Insights query that names the clusters, for the log groups of the stack. */
  readonly query: string;
  readonly metric: Fields;
  readonly periodSeconds: number;
  /** So many of the last so many periods. */
  readonly breaching: number;
  readonly of: number;
  readonly comparison?: 'LessThanThreshold';
  readonly threshold: number;
  /** What the silence of the metric means. `ignore`: nothing, the state stays. */
  readonly missing: 'breaching' | 'notBreaching' | 'ignore';
  /** Its state is part of another alarm, and it notifies no one. */
  readonly isSilent?: true;
  readonly condition?: string;
  /** Of docs/runbook.md, where it is not that of its name. */
  readonly section?: string;
}

function metricOf(name: string, loop: string, statistic: string): Fields {
  return { Namespace: METRIC_NAMESPACE, MetricName: name, Dimensions: dimensionsOf(loop), Statistic: statistic };
}

function dimensionsOf(loop: string): Fields[] {
  return [
    { Name: 'service', Value: STACK },
    { Name: 'loop', Value: loop },
  ];
}

/** A formula over the metric of some loops. */
function formulaOf(
  expression: string,
  name: string,
  loops: readonly string[],
  statistic: string,
  period: number,
): Fields {
  const metrics = loops.map((loop, at) => ({
    Id: `m${at + 1}`,
    ReturnData: false,
    MetricStat: {
      Stat: statistic,
      Period: period,
      Metric: { Namespace: METRIC_NAMESPACE, MetricName: name, Dimensions: dimensionsOf(loop) },
    },
  }));
  return { Metrics: [{ Id: 'result', Expression: expression, Label: name }, ...metrics] };
}

/**
 * A figure of the fleet is computed from the run records once a minute, whatever the intervals of the clusters are: it
 * keeps its value between two passes, so that an alarm on it neither flaps nor ends before the next pass. The silence
 * of all figures has an alarm of its own.
 */
function figureAlarm(
  figure: string,
  threshold: number,
  minutes: number,
  texts: Pick<Alarm, 'description' | 'query'>,
): Alarm {
  const metric = metricOf(figure, 'kubernetes-service', 'Maximum');
  return { ...texts, metric, periodSeconds: 60, breaching: minutes, of: minutes, threshold, missing: 'ignore' };
}

const STEP_SECONDS = 300;

/** A counter that is silent when all is well. */
function counterAlarm(name: string, breaching: number, texts: Pick<Alarm, 'description' | 'query'>): Alarm {
  const metric = formulaOf('SUM(METRICS())', name, LOOPS, 'Sum', STEP_SECONDS);
  return { ...texts, metric, periodSeconds: STEP_SECONDS, breaching, of: 3, threshold: 0, missing: 'notBreaching' };
}

const SILENT_PERIODS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 5,
  'kubernetes-service': 5,
  'cluster-ip-repair': 3,
  'node-port-repair': 3,
};

function silenceAlarm(loop: Loop): Alarm {
  const periodSeconds = Math.max(60, SCHEDULE_SECONDS[loop]);
  const periods = SILENT_PERIODS[loop];
  return {
    description: `The loop ${loop} has not run for ${(periods * periodSeconds) / 60} minutes.`,
    query: `filter loop = "${loop}" and level = "ERROR" | display @timestamp, message, errors.0 | sort @timestamp desc`,
    metric: metricOf('passes', loop, 'SampleCount'),
    periodSeconds,
    breaching: periods,
    of: periods,
    comparison: 'LessThanThreshold',
    threshold: 1,
    missing: 'breaching',
    isSilent: true,
    section: NOTHING_RAN,
  };
}

const unhealthy = (field: string) =>
  `filter message = "unhealthy clusters" | display @timestamp, ${[0, 1, 2, 3].map((at) => `${field}.${at}`).join(', ')} | sort @timestamp desc`;
const FULLEST = 'filter message = "range filling up" | stats latest(fullest.0) as fullest by loop, cluster';
const ADMISSION_ERRORS = 'filter level = "ERROR" | display @timestamp, message, errors.0 | sort @timestamp desc';
const admissionMetric = (name: string, statistic: string): Fields => ({
  Namespace: 'AWS/Lambda',
  MetricName: name,
  Dimensions: [{ Name: 'FunctionName', Value: ref('AdmissionLambdaFunction') }],
  ...(statistic.startsWith('p') ? { ExtendedStatistic: statistic } : { Statistic: statistic }),
});
/** Two bad minutes of the last three: the webhook is the only part that API servers wait for. */
const OF_ADMISSION = {
  query: ADMISSION_ERRORS,
  periodSeconds: 60,
  breaching: 2,
  of: 3,
  threshold: 0,
  missing: 'notBreaching',
  condition: 'HasAdmissionAlarms',
  section: 'admission',
} as const;

export const ALARMS: Readonly<Record<string, Alarm>> = {
  ...Object.fromEntries(LOOPS.map((loop) => [`nothing-ran-${loop}`, silenceAlarm(loop)])),
  'clusters-overdue': figureAlarm('clustersOverdue', 0, 3, {
    description: 'A loop has had no successful pass for a cluster for three of its intervals.',
    query: unhealthy('overdue'),
  }),
  'clusters-failing': figureAlarm('clustersFailing', 0, 10, {
    description: 'The passes of a loop have failed for a cluster for ten minutes.',
    query: 'filter message = "pass failed" | stats count(*) as failed, latest(errors.0) as error by loop, cluster',
  }),
  'clusters-lost': {
    description: 'More than half of the registered clusters are no longer registered, within an hour.',
    query: 'filter ispresent(clustersRegistered) | stats max(clustersRegistered) by bin(5m)',
    metric: formulaOf(
      'IF(DIFF(m1) < 0, -100 * DIFF(m1) / (m1 - DIFF(m1)), 0)',
      'clustersRegistered',
      ['kubernetes-service'],
      'Maximum',
      STEP_SECONDS,
    ),
    periodSeconds: STEP_SECONDS,
    breaching: 1,
    of: 12,
    threshold: 50,
    missing: 'ignore',
  },
  'no-live-lease': figureAlarm('clustersWithoutLiveLease', 0, 3, {
    description: 'No API server of a cluster has a valid lease. Its endpoints stay unchanged.',
    query: unhealthy('withoutLiveLease'),
  }),
  findings: figureAlarm('clustersWithFindings', 0, 2, {
    description:
      'A Service has a cluster IP or node port that is duplicate, out of range, invalid or held for another owner. It does not resolve automatically.',
    query:
      'filter loop like "repair" and @message like /"(duplicate|outOfRange|invalid|heldByAnother): / | stats latest(findings.0), latest(findings.1) by loop, cluster',
  }),
  'two-owners': figureAlarm('clustersWithTwoOwners', 0, 2, {
    description: 'Another writer keeps changing the endpoints of the kubernetes Service.',
    query: 'filter loop = "kubernetes-service" and @message like /"twoOwners: / | stats latest(findings.0) by cluster',
  }),
  'credentials-ending': figureAlarm('clustersWithCredentialsEnding', 0, 2, {
    description: 'The token or client certificate of a kubeconfig is in the last third of its life.',
    query: 'filter @message like /of the kubeconfig ends at/ | stats latest(message) by cluster',
  }),
  'range-filling': figureAlarm('fullestRangeOfFleetPercent', 80, 2, {
    description: 'A range of cluster IPs or node ports is more than 80 % full.',
    query: FULLEST,
  }),
  'range-nearly-full': figureAlarm('fullestRangeOfFleetPercent', 95, 2, {
    description: 'A range of cluster IPs or node ports is more than 95 % full.',
    query: FULLEST,
  }),
  'late-ticks': counterAlarm('lateTicks', 3, {
    description: 'Ticks came more than an interval late and were dropped, for 15 minutes.',
    query: 'filter message in ["schedule dropped", "tick dropped"] | stats count(*) as late by loop, bin(5m)',
  }),
  'late-probes': counterAlarm('lateProbes', 2, {
    description: 'A process was too busy to receive the answers of API servers to its probes, for 10 minutes.',
    query:
      'filter @message like /this process was busy while it probed/ | stats count(*) as late, latest(findings.0) by cluster',
  }),
  'unqueued-ticks': counterAlarm('unqueuedTicks', 2, {
    description: 'Ticks could not be queued: loops run once a minute instead of at every tick.',
    query: 'filter message = "ticks not queued" | display @timestamp, loop, errors.0 | sort @timestamp desc',
  }),
  'clock-skewed': counterAlarm('clockSkewed', 3, {
    description: "The clock of a function differs from the table's by more than 2 s, for 15 minutes.",
    query: 'filter message like /clock differs/ | display @timestamp, loop, message | sort @timestamp desc',
  }),
  'admission-errors': {
    ...OF_ADMISSION,
    description: 'Invocations of the admission webhook end with an error.',
    metric: admissionMetric('Errors', 'Sum'),
  },
  'admission-throttled': {
    ...OF_ADMISSION,
    description: 'Invocations of the admission webhook are throttled: its concurrency is used up.',
    metric: admissionMetric('Throttles', 'Sum'),
  },
  'admission-slow': {
    ...OF_ADMISSION,
    description: 'One of a hundred answers of the admission webhook takes more than 3 seconds.',
    metric: admissionMetric('Duration', 'p99'),
    threshold: 3000,
  },
  'admission-url-failing': {
    ...OF_ADMISSION,
    description: 'The function URL of the admission webhook answers with status 500 or more.',
    metric: admissionMetric('Url5xxCount', 'Sum'),
    condition: 'HasAdmissionUrlAlarms',
  },
  'admission-api-failing': {
    ...OF_ADMISSION,
    description: 'The API of the admission webhook answers with status 500 or more.',
    metric: {
      Namespace: 'AWS/ApiGateway',
      MetricName: '5XXError',
      Dimensions: [{ Name: 'ApiName', Value: substitute('${AWS::StackName}-admission') }],
      Statistic: 'Sum',
    },
    condition: 'HasAdmissionApiAlarms',
  },
};

function alarmId(name: string): string {
  return `${pascalCase(name)}Alarm`;
}

export function alarms(): Resources {
  const all = Object.entries(ALARMS).map(([name, alarm]) => [alarmId(name), alarmResource(name, alarm)]);
  return { ...Object.fromEntries(all), [alarmId(NOTHING_RAN)]: NOTHING_RAN_ALARM };
}

function alarmResource(name: string, alarm: Alarm): Resource {
  const isFormula = 'Metrics' in alarm.metric;
  return {
    Type: 'AWS::CloudWatch::Alarm',
    Condition: alarm.condition ?? 'HasAlarms',
    Properties: {
      AlarmName: substitute(`\${AWS::StackName}-${name}`),
      AlarmDescription: descriptionOf(name, alarm),
      ...(!alarm.isSilent && { AlarmActions: TOPIC, OKActions: TOPIC }),
      ...alarm.metric,
      ...(!isFormula && { Period: alarm.periodSeconds }),
      DatapointsToAlarm: alarm.breaching,
      EvaluationPeriods: alarm.of,
      ComparisonOperator: alarm.comparison ?? 'GreaterThanThreshold',
      Threshold: alarm.threshold,
      TreatMissingData: alarm.missing,
    },
  };
}

function descriptionOf(name: string, { description, query, section = name }: Alarm): Fields {
  return substitute(`${description}\nLogs Insights: ${query}\nRunbook: \${Runbook}#${section}`);
}

/** One notification for all loops. */
const NOTHING_RAN_ALARM: Resource = {
  Type: 'AWS::CloudWatch::CompositeAlarm',
  Condition: 'HasAlarms',
  DependsOn: LOOPS.map((loop) => alarmId(`nothing-ran-${loop}`)),
  Properties: {
    AlarmName: substitute(`\${AWS::StackName}-${NOTHING_RAN}`),
    AlarmDescription: substitute(
      `A loop of the stack has stopped running: the alarm ${NOTHING_RAN}-<loop> names it.\nRunbook: \${Runbook}#${NOTHING_RAN}`,
    ),
    AlarmRule: substitute(LOOPS.map((loop) => `ALARM("\${AWS::StackName}-nothing-ran-${loop}")`).join(' OR ')),
    AlarmActions: TOPIC,
    OKActions: TOPIC,
  },
};
