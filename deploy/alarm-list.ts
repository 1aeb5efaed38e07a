import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../lib/spec/cluster-spec.ts';
import { METRIC_NAMESPACE } from '../lib/telemetry/telemetry.ts';
import { type Fields, ref, STACK, substitute, type Value } from './cloudformation.ts';
import { FUNCTIONS, isLoop } from './functions.ts';

export const NOTHING_RAN = 'nothing-ran';
export const RELEASE_FAILING = 'release-failing';

export interface Alarm {
  readonly description: string;
  /** The Logs Insights query over the log groups of the stack. It lists affected clusters, or log lines about the cause. */
  readonly query: string;
  /** The metric or formula with its period and threshold, and in how many recent periods the threshold must be crossed. */
  readonly fires: Fields;
  /** True if the alarm is part of `release-failing`, which rolls an update back. */
  readonly ofRelease?: true;
  readonly condition?: string;
  /** The section of docs/runbook.md. Default: the section with the alarm's name. */
  readonly section?: string;
}

/**
 * Returns the condition that the threshold is crossed in `breaching` of the last `of` periods. `missing` is the meaning
 * of a missing metric; with `ignore` the alarm keeps its state.
 */
function within(breaching: number, of: number, missing: 'breaching' | 'notBreaching' | 'ignore'): Fields {
  return { DatapointsToAlarm: breaching, EvaluationPeriods: of, TreatMissingData: missing };
}
const above = (Threshold: Value): Fields => ({ ComparisonOperator: 'GreaterThanThreshold', Threshold });
const below = (Threshold: Value): Fields => ({ ComparisonOperator: 'LessThanThreshold', Threshold });

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

const ofFleet = (figure: string) => metricName(figure, 'kubernetes-service');
const OF_SHARE: Fields = { ComparisonOperator: 'GreaterThanOrEqualToThreshold', Threshold: ref('AlarmSharePercent') };

interface Declared extends Pick<Alarm, 'description' | 'query' | 'ofRelease'> {
  readonly share?: string;
  readonly figure?: string;
  readonly statistic?: string;
  readonly threshold?: number;
  readonly minutes?: number;
  readonly counter?: string;
  readonly breaching?: number;
}

const DECLARED: Readonly<Record<string, Declared>> = parse(
  readFileSync(path.join(import.meta.dirname, 'alarms.yml'), 'utf8'),
);

const STEP_SECONDS = 300;

/**
 * Returns the alarm of a declaration. Figures of the fleet are computed from the run records once a minute, whatever the
 * intervals of the clusters are. The figures of a cluster stay the same between two passes, so that an alarm does not
 * flap. While figures are missing, the alarm keeps its state and `figures-missing` fires. A large fleet is counted in
 * parts, and the alarm uses the sum.
 */
function declaredAlarm({ share, figure, counter, ...declared }: Declared): Alarm {
  const { statistic = 'Sum', threshold = 0, minutes = 2, breaching = 0, ...texts } = declared;
  if (counter !== undefined) {
    const ofLoops = LOOPS.map((loop) => [metricName(counter, loop), 'Sum'] as const);
    const sum = formulaOf('SUM(METRICS())', counter, ofLoops, STEP_SECONDS);
    return { ...texts, fires: { ...sum, ...above(0), ...within(breaching, 3, 'notBreaching') } };
  }
  const ofMinutes = within(minutes, minutes, 'ignore');
  if (figure !== undefined) {
    const metric = { ...ofFleet(figure), Statistic: statistic, Period: 60 };
    return { ...texts, fires: { ...metric, ...above(threshold), ...ofMinutes } };
  }
  const terms = [share ?? '', 'clustersJudged'].map((name) => [ofFleet(name), 'Sum'] as const);
  const formula = formulaOf('IF(m2 > 0, 100 * m1 / m2, 0)', `${share} %`, terms, 60);
  return { ...texts, fires: { ...formula, ...OF_SHARE, ...ofMinutes } };
}

/**
 * `FILL` replaces missing values by zeros: otherwise CloudWatch would use older values, and the alarm would fire later. The
 * threshold tolerates that a part of the fleet is counted in the next minute.
 */
const FIGURES_MISSING: Alarm = {
  description: 'The health of the registered clusters is not known, or no cluster is registered.',
  query:
    'filter message in ["fleet figures missing", "ticks not queued"] or message like /Task timed out/ | sort @timestamp desc',
  fires: {
    ...formulaOf(
      'IF(FILL(m1, 0) > 0, 100 * FILL(m2, 0) / FILL(m1, 0), 0)',
      'clusters judged %',
      [
        [ofFleet('clustersRegistered'), 'Maximum'],
        [ofFleet('clustersJudged'), 'Sum'],
      ],
      60,
    ),
    ...below(90),
    ...within(2, 2, 'breaching'),
  },
  ofRelease: true,
};

/** Returns the interval of a function's scheduled invocations in seconds, at least 60: EventBridge has no shorter interval. */
function periodOf(functionName: string): number {
  return isLoop(functionName) ? Math.max(60, SCHEDULE_SECONDS[functionName]) : 60;
}

function silenceAlarm(loop: Loop): Alarm {
  const passes = { ...metricName('passes', loop), Statistic: 'SampleCount', Period: periodOf(loop) };
  const periods = periodOf(loop) > 60 ? 3 : 5;
  return {
    description: `The loop ${loop} has not run.`,
    query: `filter loop = "${loop}" and level = "ERROR" | display @timestamp, message, errors.0 | sort @timestamp desc`,
    fires: { ...passes, ...below(1), ...within(periods, periods, 'breaching') },
    ofRelease: true,
    section: NOTHING_RAN,
  };
}

const ERRORS =
  'filter level = "ERROR" or @message like /Task timed out|Runtime.ExitError/ | display @timestamp, message, errors.0 | sort @timestamp desc';
const lambdaMetric = (name: string, functionName: string): Fields => ({
  Namespace: 'AWS/Lambda',
  MetricName: name,
  Dimensions: [{ Name: 'FunctionName', Value: substitute(`\${AWS::StackName}-${functionName}`) }],
});

/**
 * Returns an alarm for invocations that fail: with an error, at their timeout, or because memory ran out. A failed pass does not
 * make its invocation fail, but an unreadable cluster list may.
 */
function errorsAlarm(functionName: string): Alarm {
  const terms = ['Errors', 'Invocations'].map((name) => [lambdaMetric(name, functionName), 'Sum'] as const);
  return {
    description: `Invocations of the function ${functionName} end with an error, at their timeout or without memory.`,
    query: ERRORS,
    fires: {
      ...formulaOf('100 * m1 / m2', 'errors %', terms, periodOf(functionName)),
      ...OF_SHARE,
      ...within(2, 3, 'notBreaching'),
    },
    section: 'errors',
    ofRelease: true,
    ...(functionName === 'admission' && { condition: 'HasAdmissionAlarms', section: 'admission' }),
  };
}

/** Returns an alarm that fires if the metric exceeds its threshold, by default 0, in two of the last three minutes. */
function admissionAlarm(description: string, metric: Fields, condition = 'HasAdmissionAlarms'): Alarm {
  return {
    description,
    query: ERRORS,
    fires: { Period: 60, ...above(0), ...within(2, 3, 'notBreaching'), ...metric },
    ofRelease: true,
    condition,
    section: 'admission',
  };
}

export const ALARMS: Readonly<Record<string, Alarm>> = {
  ...Object.fromEntries(LOOPS.map((loop) => [`nothing-ran-${loop}`, silenceAlarm(loop)])),
  ...Object.fromEntries(FUNCTIONS.map((name) => [`${name}-errors`, errorsAlarm(name)])),
  'figures-missing': FIGURES_MISSING,
  ...Object.fromEntries(Object.entries(DECLARED).map(([name, declared]) => [name, declaredAlarm(declared)])),
  'clusters-lost': {
    description: 'More than half of the registered clusters are no longer registered.',
    query: 'filter ispresent(clustersRegistered) | stats max(clustersRegistered) by bin(5m)',
    fires: {
      ...formulaOf(
        'IF(DIFF(m1) < 0, -100 * DIFF(m1) / (m1 - DIFF(m1)), 0)',
        'clusters lost %',
        [[ofFleet('clustersRegistered'), 'Maximum']],
        STEP_SECONDS,
      ),
      ...above(50),
      ...within(1, 12, 'ignore'),
    },
    ofRelease: true,
  },
  'admission-throttled': admissionAlarm(
    'Invocations of the admission webhook are throttled: its concurrency is used up.',
    { ...lambdaMetric('Throttles', 'admission'), Statistic: 'Sum' },
  ),
  'admission-slow': admissionAlarm('One of a hundred answers of the admission webhook takes more than 3 seconds.', {
    ...lambdaMetric('Duration', 'admission'),
    ExtendedStatistic: 'p99',
    Threshold: 3000,
  }),
  'admission-url-failing': admissionAlarm(
    'The function URL of the admission webhook answers with status 500 or more.',
    { ...lambdaMetric('Url5xxCount', 'admission'), Statistic: 'Sum' },
    'HasAdmissionUrlAlarms',
  ),
  'admission-api-failing': admissionAlarm(
    'The API of the admission webhook answers with status 500 or more.',
    {
      Namespace: 'AWS/ApiGateway',
      MetricName: '5XXError',
      Dimensions: [{ Name: 'ApiName', Value: substitute('${AWS::StackName}-admission') }],
      Statistic: 'Sum',
    },
    'HasAdmissionApiAlarms',
  ),
};
