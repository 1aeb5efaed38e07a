export type AlarmState = 'OK' | 'ALARM' | 'INSUFFICIENT_DATA';

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}

interface MetricStat {
  readonly Stat: string;
  readonly Period: number;
  readonly Metric: Metric;
}

/** The properties of an alarm in CloudFormation, with names and references resolved. */
export interface MetricAlarm extends Partial<Metric> {
  readonly AlarmName: string;
  readonly Statistic?: string;
  readonly ExtendedStatistic?: string;
  readonly Period?: number;
  readonly Metrics?: readonly { readonly Expression?: string; readonly MetricStat?: MetricStat }[];
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm: number;
  readonly ComparisonOperator: string;
  /** The threshold. A reference to a parameter is replaced by its text. */
  readonly Threshold: number | string;
  readonly TreatMissingData: string;
}

/** A value of a metric in one minute. */
export interface Sample {
  readonly metric: string;
  /** The loop or the name of the function. Absent for a metric without these dimensions. */
  readonly loop?: string;
  readonly value: number;
}

type Series = readonly (number | undefined)[];

/** The periods that CloudWatch reads in addition to those that it evaluates. Their values replace missing ones. */
const EXTRA_PERIODS = 2;

/**
 * Returns the state of an alarm in each minute, as CloudWatch evaluates it: M of N datapoints, with the rules for missing data of
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html.
 * @param minutes the samples of each minute
 */
export function statesOf(alarm: MetricAlarm, minutes: readonly (readonly Sample[])[]): AlarmState[] {
  const stats = metricsOf(alarm);
  const periodMinutes = (stats[0]?.Period ?? 60) / 60;
  const metrics = stats.map(({ Stat: statistic, Metric: { MetricName, Dimensions } }) => {
    const loop = Dimensions.find(({ Name }) => Name === 'loop' || Name === 'FunctionName')?.Value;
    const isOf = (sample: Sample) => sample.metric === MetricName && sample.loop === loop;
    return { statistic, byMinute: minutes.map((samples) => samples.filter(isOf).map(({ value }) => value)) };
  });
  const expression = alarm.Metrics?.find(({ Expression }) => Expression !== undefined)?.Expression;
  // One more period is computed, because a formula can use the value of the previous period.
  const range = alarm.EvaluationPeriods + EXTRA_PERIODS;
  const periods = Array.from({ length: range + 1 }, (_, at) => range - at);
  const states: AlarmState[] = [];
  let state: AlarmState = 'INSUFFICIENT_DATA';
  for (const minute of minutes.keys()) {
    const series = metrics.map(({ statistic, byMinute: values }) =>
      periods.map((back) => {
        const end = minute - back * periodMinutes;
        return end <= 0 ? undefined : aggregate(values.slice(Math.max(0, end - periodMinutes), end).flat(), statistic);
      }),
    );
    state = nextState(alarm, formula(expression, series).slice(1), state);
    states.push(state);
  }
  return states;
}

/** Returns the metrics of an alarm, in the order of its formula if it has one. */
export function metricsOf(alarm: MetricAlarm): readonly MetricStat[] {
  const {
    Metrics,
    Statistic,
    ExtendedStatistic,
    Period = 60,
    Namespace = '',
    MetricName = '',
    Dimensions = [],
  } = alarm;
  if (Metrics !== undefined) return Metrics.flatMap(({ MetricStat: stat }) => stat ?? []);
  const Metric = { Namespace, MetricName, Dimensions };
  return [{ Stat: Statistic ?? ExtendedStatistic ?? '', Period, Metric }];
}

const COMPARISONS: Readonly<Record<string, (value: number, threshold: number) => boolean>> = {
  LessThanThreshold: (value, threshold) => value < threshold,
  GreaterThanThreshold: (value, threshold) => value > threshold,
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
};

function nextState(alarm: MetricAlarm, datapoints: Series, state: AlarmState): AlarmState {
  const { ComparisonOperator, DatapointsToAlarm: needed, EvaluationPeriods: evaluated, TreatMissingData } = alarm;
  const threshold = Number(alarm.Threshold);
  const breaches = COMPARISONS[ComparisonOperator];
  if (breaches === undefined) throw new Error(`The comparison ${ComparisonOperator} is none that this knows.`);
  const latest = datapoints.slice(-evaluated);
  const isWhole = latest.every((value) => value !== undefined);
  const known = (isWhole ? latest : datapoints).filter((value) => value !== undefined).slice(-evaluated);
  const missing = evaluated - known.length;
  const breaching = known.filter((value) => breaches(value, threshold)).length;
  switch (TreatMissingData) {
    case 'breaching':
      return breaching + missing >= needed ? 'ALARM' : 'OK';
    case 'notBreaching':
      return breaching >= needed ? 'ALARM' : 'OK';
    case 'ignore':
      if (breaching >= needed) return 'ALARM';
      // Even if the missing datapoints breached, there would be too few.
      return breaching + missing < needed ? 'OK' : state;
    default:
      throw new Error(`Missing data are treated as ${TreatMissingData}, which this does not know.`);
  }
}

function aggregate(values: readonly number[], statistic: string): number | undefined {
  // A period without a sample has no datapoint for any statistic.
  if (values.length === 0) return undefined;
  switch (statistic) {
    case 'SampleCount':
      return values.length;
    case 'Sum':
      return values.reduce((sum, value) => sum + value, 0);
    case 'Maximum':
    case 'p99':
      return Math.max(...values);
    default:
      throw new Error(`The statistic ${statistic} is none that this knows.`);
  }
}

function percent(part: number | undefined, whole: number | undefined): number | undefined {
  return part === undefined || whole === undefined || whole === 0 ? undefined : (100 * part) / whole;
}

/** Evaluates the formulas in deploy/alarms.ts. Other formulas are not supported. */
function formula(expression: string | undefined, series: readonly Series[]): Series {
  const first = series[0] ?? [];
  switch (expression) {
    case undefined:
      return first;
    case 'SUM(METRICS())':
      return first.map((_, at) => {
        const known = series.flatMap((values) => values[at] ?? []);
        return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
      });
    case '100 * m1 / m2':
      return first.map((value, at) => percent(value, series[1]?.[at]));
    case 'IF(m2 > 0, 100 * m1 / m2, 0)':
      return first.map((value, at) => (series[1]?.[at] === 0 ? 0 : percent(value, series[1]?.[at])));
    case 'IF(FILL(m1, 0) > 0, 100 * FILL(m2, 0) / FILL(m1, 0), 0)':
      // FILL has no effect without any value.
      if (series.every((values) => values.every((value) => value === undefined))) return first;
      return first.map((value, at) => percent(series[1]?.[at] ?? 0, value) ?? 0);
    case 'IF(DIFF(m1) < 0, -100 * DIFF(m1) / (m1 - DIFF(m1)), 0)':
      return first.map((value, at) => {
        const before = first.slice(0, at).findLast((one) => one !== undefined);
        if (value === undefined || before === undefined) return undefined;
        return value < before ? (100 * (before - value)) / before : 0;
      });
    default:
      throw new Error(`The formula ${expression} is none that this knows.`);
  }
}

/** Returns the states of a composite alarm with a rule such as ALARM("name") OR ALARM("name"). */
export function compositeStates(rule: string, states: ReadonlyMap<string, readonly AlarmState[]>): AlarmState[] {
  const [first = []] = states.values();
  return first.map((_, minute) => {
    const names = rule.split(' OR ').map((term) => /^ALARM\("([^"]+)"\)$/.exec(term)?.[1] ?? term);
    const alarming = names.filter((name) => {
      const children = states.get(name);
      if (children === undefined) throw new Error(`The rule names ${name}, which is no alarm.`);
      return children[minute] === 'ALARM';
    });
    return alarming.length > 0 ? 'ALARM' : 'OK';
  });
}
