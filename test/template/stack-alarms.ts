import { type ResolvedResource, resolveTemplate } from '../support/resolve-template.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

export const STACK = 'a-stack';

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}

type MetricStat = Readonly<{ Stat: string; Period: number; Metric: Metric }>;

/** The properties of an alarm in CloudFormation, with names and references resolved. */
export interface StackAlarm extends Partial<Metric> {
  readonly AlarmName: string;
  readonly AlarmDescription: string;
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

/** Returns the resources of a stack with the admission webhook. */
export function resourcesOf(parameters: Readonly<Record<string, string>> = {}): readonly ResolvedResource[] {
  return Object.values(resolveTemplate(uncompiledTemplate(), { Admission: 'on', ...parameters }, STACK).Resources);
}

const RESOURCES = resourcesOf();
const ofType = (type: string) => RESOURCES.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);

export const METRIC_ALARMS: readonly StackAlarm[] = ofType('AWS::CloudWatch::Alarm');
export const COMPOSITES: readonly (StackAlarm & { readonly AlarmRule: string })[] = ofType(
  'AWS::CloudWatch::CompositeAlarm',
);

export function nameOf({ AlarmName }: Pick<StackAlarm, 'AlarmName'>): string {
  return AlarmName.slice(STACK.length + 1);
}

/** Returns the metrics of an alarm, in the order of its formula if it has one. */
export function metricsOf(alarm: StackAlarm): readonly MetricStat[] {
  const { Metrics, Statistic, ExtendedStatistic, Period = 60 } = alarm;
  if (Metrics !== undefined) return Metrics.flatMap(({ MetricStat: stat }) => stat ?? []);
  const { Namespace = '', MetricName = '', Dimensions = [] } = alarm;
  return [{ Stat: Statistic ?? ExtendedStatistic ?? '', Period, Metric: { Namespace, MetricName, Dimensions } }];
}
