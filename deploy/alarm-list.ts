import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import { METRIC_NAMESPACE } from '../lib/telemetry/telemetry.ts';
import { type Fields, ref, STACK, substitute } from './cloudformation.ts';
import { FUNCTIONS, isLoop } from './functions.ts';

export const NOTHING_RAN = 'nothing-ran';
export const RELEASE_FAILING = 'release-failing';

export interface Alarm {
  /** The fault, as one sentence. */
  readonly description: string;
  /** The Logs Insights query that names the clusters, for the log groups of the stack. */
  readonly query: string;
  readonly metric: Fields;
  readonly periodSeconds: number;
  /** The alarm fires if the threshold is crossed in this many of the last `of` periods. */
  readonly breaching: number;
  readonly of: number;
  /** Default: above the threshold. */
  readonly comparison?: 'LessThanThreshold' | 'GreaterThanOrEqualToThreshold';
  readonly threshold: number | Fields;
  /** The meaning of a missing metric. `ignore`: the state stays. */
  readonly missing: 'breaching' | 'notBreaching' | 'ignore';
  /** Its state is part of another alarm, and it notifies no one. */
  readonly isSilent?: true;
  /** It rolls an update back (`release-failing`). */
  readonly ofRelease?: true;
  readonly condition?: string;
  /** The section of docs/runbook.md, if it does not have the alarm's name. */
  readonly section?: string;
}

function metricOf(name: string, loop: string, statistic: string): Fields {
  return { ...metricName(name, loop), Statistic: statistic };
}

function metricName(name: string, loop: string): Fields {
  const dimensions = [
    { Name: 'service', Value: STACK },
    { Name: 'loop', Value: loop },
  ];
  return { Namespace: METRIC_NAMESPACE, MetricName: name, Dimensions: dimensions };
}

/** Returns a formula over metrics `m1`, `m2` and so on, each with its statistic. */
function formulaOf(
  expression: string,
  label: string,
  metrics: readonly (readonly [metric: Fields, statistic: string])[],
  period: number,
): Fields {
  const terms = metrics.map(([metric, statistic], at) => ({
    Id: `m${at + 1}`,
    ReturnData: false,
    MetricStat: { Stat: statistic, Period: period, Metric: metric },
  }));
  return { Metrics: [{ Id: 'result', Expression: expression, Label: label }, ...terms] };
}

type Texts = Pick<Alarm, 'description' | 'query'>;

const ofFleet = (figure: string) => metricName(figure, 'kubernetes-service');
const OF_SHARE = { comparison: 'GreaterThanOrEqualToThreshold', threshold: ref('AlarmSharePercent') } as const;

/**
 * An alarm on a figure of the fleet. The figure is computed from the run records once a minute, whatever the intervals
 * of the clusters are, and keeps its value between two passes, so that the alarm does not flap. While figures are
 * missing it keeps its state, and `figures-missing` fires. A large fleet is counted in parts, each with its sum.
 */
function shareAlarm(figure: string, minutes: number, texts: Texts): Alarm {
  const share = 'IF(m2 > 0, 100 * m1 / m2, 0)';
  const metric = formulaOf(
    share,
    `${figure} %`,
    [
      [ofFleet(figure), 'Sum'],
      [ofFleet('clustersJudged'), 'Sum'],
    ],
    60,
  );
  return { ...texts, metric, periodSeconds: 60, breaching: minutes, of: minutes, ...OF_SHARE, missing: 'ignore' };
}

function rangeAlarm(percent: number, texts: Texts): Alarm {
  const metric = metricOf('fullestRangeOfFleetPercent', 'kubernetes-service', 'Maximum');
  return { ...texts, metric, periodSeconds: 60, breaching: 2, of: 2, threshold: percent, missing: 'ignore' };
}

/**
 * Without the zeros, CloudWatch would use older values for missing ones, and notice later. The threshold tolerates a
 * part that is counted in the next minute.
 */
const FIGURES_MISSING: Alarm = {
  description: 'The health of the registered clusters is not known, or no cluster is registered.',
  query:
    'filter message in ["fleet figures missing", "ticks not queued"] or message like /Task timed out/ | sort @timestamp desc',
  metric: formulaOf(
    'IF(FILL(m1, 0) > 0, 100 * FILL(m2, 0) / FILL(m1, 0), 0)',
    'clusters judged %',
    [
      [ofFleet('clustersRegistered'), 'Maximum'],
      [ofFleet('clustersJudged'), 'Sum'],
    ],
    60,
  ),
  periodSeconds: 60,
  ...{ breaching: 2, of: 2, comparison: 'LessThanThreshold', threshold: 90, missing: 'breaching', ofRelease: true },
};

const STEP_SECONDS = 300;

/** An alarm on a counter that is silent without faults. */
function counterAlarm(name: string, breaching: number, texts: Texts): Alarm {
  const ofLoops = LOOPS.map((loop) => [metricName(name, loop), 'Sum'] as const);
  const metric = formulaOf('SUM(METRICS())', name, ofLoops, STEP_SECONDS);
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
    description: `The loop ${loop} has not run.`,
    query: `filter loop = "${loop}" and level = "ERROR" | display @timestamp, message, errors.0 | sort @timestamp desc`,
    metric: metricOf('passes', loop, 'SampleCount'),
    periodSeconds,
    breaching: periods,
    of: periods,
    comparison: 'LessThanThreshold',
    threshold: 1,
    missing: 'breaching',
    isSilent: true,
    ofRelease: true,
    section: NOTHING_RAN,
  };
}

const unhealthy = (field: string) =>
  `filter message = "unhealthy clusters" | display @timestamp, ${[0, 1, 2, 3].map((at) => `${field}.${at}`).join(', ')} | sort @timestamp desc`;
const FULLEST = 'filter message = "range filling up" | stats latest(fullest.0) as fullest by loop, cluster';
const ERRORS =
  'filter level = "ERROR" or @message like /Task timed out|Runtime.ExitError/ | display @timestamp, message, errors.0 | sort @timestamp desc';
const lambdaMetric = (name: string, functionName: string): Fields => ({
  Namespace: 'AWS/Lambda',
  MetricName: name,
  Dimensions: [{ Name: 'FunctionName', Value: substitute(`\${AWS::StackName}-${functionName}`) }],
});
const admissionMetric = (name: string, statistic: string): Fields => ({
  ...lambdaMetric(name, 'admission'),
  ...(statistic.startsWith('p') ? { ExtendedStatistic: statistic } : { Statistic: statistic }),
});

/**
 * An alarm on invocations that end with an error, at the timeout or without memory. Of failed passes only the table's
 * failures count.
 */
function errorsAlarm(functionName: string): Alarm {
  const periodSeconds = isLoop(functionName) ? Math.max(60, SCHEDULE_SECONDS[functionName]) : 60;
  const terms = ['Errors', 'Invocations'].map((name) => [lambdaMetric(name, functionName), 'Sum'] as const);
  return {
    description: `Invocations of the function ${functionName} end with an error, at their timeout or without memory.`,
    query: ERRORS,
    metric: formulaOf('100 * m1 / m2', 'errors %', terms, periodSeconds),
    periodSeconds,
    ...{ breaching: 2, of: 3, ...OF_SHARE, missing: 'notBreaching', section: 'errors', ofRelease: true },
    ...(functionName === 'admission' && { condition: 'HasAdmissionAlarms', section: 'admission' }),
  };
}

/** Two failing minutes of the last three: API servers wait for no other function than the webhook. */
const OF_ADMISSION = {
  query: ERRORS,
  periodSeconds: 60,
  breaching: 2,
  of: 3,
  threshold: 0,
  missing: 'notBreaching',
  ofRelease: true,
  condition: 'HasAdmissionAlarms',
  section: 'admission',
} as const;

export const ALARMS: Readonly<Record<string, Alarm>> = {
  ...Object.fromEntries(LOOPS.map((loop) => [`nothing-ran-${loop}`, silenceAlarm(loop)])),
  ...Object.fromEntries(FUNCTIONS.map((name) => [`${name}-errors`, errorsAlarm(name)])),
  'figures-missing': FIGURES_MISSING,
  'clusters-overdue': {
    ...shareAlarm('clustersOverdue', 2, {
      description: 'In clusters, three passes of a loop failed in a row, or none succeeded for three intervals.',
      query: unhealthy('overdue'),
    }),
    ofRelease: true,
  },
  'clusters-failing': shareAlarm('clustersFailing', 10, {
    description: 'In clusters, the last pass of a loop failed.',
    query: 'filter message = "pass failed" | stats count(*) as failed, latest(errors.0) as error by loop, cluster',
  }),
  'clusters-lost': {
    description: 'More than half of the registered clusters are no longer registered.',
    query: 'filter ispresent(clustersRegistered) | stats max(clustersRegistered) by bin(5m)',
    metric: formulaOf(
      'IF(DIFF(m1) < 0, -100 * DIFF(m1) / (m1 - DIFF(m1)), 0)',
      'clusters lost %',
      [[ofFleet('clustersRegistered'), 'Maximum']],
      STEP_SECONDS,
    ),
    periodSeconds: STEP_SECONDS,
    breaching: 1,
    of: 12,
    threshold: 50,
    missing: 'ignore',
    ofRelease: true,
  },
  'no-live-lease': shareAlarm('clustersWithoutLiveLease', 3, {
    description: 'No API server of a cluster has a valid lease. The endpoints stay unchanged.',
    query: unhealthy('withoutLiveLease'),
  }),
  findings: shareAlarm('clustersWithFindings', 2, {
    description:
      'A Service has a cluster IP or node port that is duplicate, out of range, invalid or held for another owner. It does not resolve automatically.',
    query:
      'filter loop like "repair" and @message like /"(duplicate|outOfRange|invalid|heldByAnother): / | stats latest(findings.0), latest(findings.1) by loop, cluster',
  }),
  'two-owners': shareAlarm('clustersWithTwoOwners', 2, {
    description: 'Another writer keeps changing the endpoints of the kubernetes Service.',
    query: 'filter loop = "kubernetes-service" and @message like /"twoOwners: / | stats latest(findings.0) by cluster',
  }),
  'credentials-ending': shareAlarm('clustersWithCredentialsEnding', 2, {
    description: 'The token or client certificate of a kubeconfig is in the last third of its life.',
    query: 'filter @message like /of the kubeconfig ends at/ | stats latest(message) by cluster',
  }),
  'range-filling': rangeAlarm(80, {
    description: 'A range of cluster IPs or node ports is more than 80 % full.',
    query: FULLEST,
  }),
  'range-nearly-full': rangeAlarm(95, {
    description: 'A range of cluster IPs or node ports is more than 95 % full.',
    query: FULLEST,
  }),
  'late-ticks': counterAlarm('lateTicks', 3, {
    description: 'Ticks came more than an interval late and were dropped.',
    query: 'filter message in ["schedule dropped", "tick dropped"] | stats count(*) as late by loop, bin(5m)',
  }),
  'late-probes': counterAlarm('lateProbes', 2, {
    description: 'A process was too busy to receive the answers of API servers to its probes.',
    query:
      'filter @message like /this process was busy while it probed/ | stats count(*) as late, latest(findings.0) by cluster',
  }),
  'unqueued-ticks': counterAlarm('unqueuedTicks', 2, {
    description: 'Ticks could not be queued: loops run once a minute instead of at every tick.',
    query: 'filter message = "ticks not queued" | display @timestamp, loop, errors.0 | sort @timestamp desc',
  }),
  'clock-skewed': counterAlarm('clockSkewed', 3, {
    description: "The clock of a function differs from the table's by more than 2 s.",
    query: 'filter message like /clock differs/ | display @timestamp, loop, message | sort @timestamp desc',
  }),
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
