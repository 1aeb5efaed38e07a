import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import type { FleetFigure } from '../../lib/telemetry/telemetry.ts';
import { type ResolvedResource, resolveTemplate } from '../support/resolve-template.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';
import { type AlarmState, compositeStates, type MetricAlarm, type Sample, statesOf } from './cloudwatch-alarms.ts';

export const STACK = 'a-stack';

export interface StackAlarm extends MetricAlarm {
  readonly AlarmDescription: string;
  readonly AlarmActions?: readonly string[];
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

/** Returns the states of the alarms that notify and of `release-failing`, in each minute of a stack. */
export function statesOfAll(
  minutes: number,
  at: (minute: number) => Minute,
): ReadonlyMap<string, readonly AlarmState[]> {
  const samples = measured(minutes, at);
  const states = new Map(METRIC_ALARMS.map((alarm) => [alarm.AlarmName, statesOf(alarm, samples)]));
  const notifying = METRIC_ALARMS.filter(({ AlarmActions }) => AlarmActions !== undefined);
  return new Map([
    ...notifying.map((alarm) => [nameOf(alarm), states.get(alarm.AlarmName) ?? []] as const),
    ...COMPOSITES.map((alarm) => [nameOf(alarm), compositeStates(alarm.AlarmRule, states)] as const),
  ]);
}

const FIGURES: Readonly<Record<FleetFigure, number>> = {
  clustersRegistered: 1,
  clustersJudged: 1,
  clustersOverdue: 0,
  clustersFailing: 0,
  clustersWithoutLiveLease: 0,
  clustersPaused: 0,
  clustersWithFindings: 0,
  clustersWithTwoOwners: 0,
  clustersWithCredentialsEnding: 0,
  fullestRangeOfFleetPercent: 0,
};

export interface Minute {
  readonly runs: boolean;
  /** The figures that differ from those of a fleet with one healthy cluster. `missing`: no figures are written. */
  readonly figures?: Partial<Readonly<Record<FleetFigure, number>>> | 'missing';
  /** The counters of the kubernetes-service loop. */
  readonly counters?: Readonly<Record<string, number>>;
  /** The metrics of AWS by the name of the function or API of the stack. */
  readonly ofAws?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Returns the samples of each minute of a stack: passes and invocations of functions, and the figures of the fleet. */
function measured(minutes: number, at: (minute: number) => Minute): Sample[][] {
  return Array.from({ length: minutes }, (_, atMinute) => {
    const { runs, figures = {}, counters = {}, ofAws = {} } = at(atMinute);
    const isDue = (loop: Loop) => atMinute % Math.max(1, SCHEDULE_SECONDS[loop] / 60) === 0;
    const samplesOf = (loop: string, values: Readonly<Record<string, number>>) =>
      Object.entries(values).map(([metric, value]) => ({ metric, loop, value }));
    const ours = [
      ...LOOPS.filter(isDue).flatMap((loop) => samplesOf(loop, { passes: 1 })),
      ...LOOPS.filter(isDue).flatMap((loop) => samplesOf(`${STACK}-${loop}`, { Invocations: 1, Errors: 0 })),
      ...(figures === 'missing' ? [] : samplesOf('kubernetes-service', { ...FIGURES, ...figures })),
    ];
    const others = Object.entries(ofAws).flatMap(([name, values]) => samplesOf(`${STACK}-${name}`, values));
    return [...(runs ? ours : []), ...samplesOf('kubernetes-service', counters), ...others];
  });
}

/** The minutes after which every loop of a new stack has run. */
const STARTED_MINUTES = 15;

/** Returns the minutes in which the state ALARM begins or ends after the start of the stack. */
export function changesOf(states: readonly AlarmState[]): readonly number[] {
  const alarming = states.map((state, minute) => state === 'ALARM' && minute >= STARTED_MINUTES);
  return alarming.flatMap((is, minute) => (is === (alarming[minute - 1] ?? false) ? [] : [minute]));
}
