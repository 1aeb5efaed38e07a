import { ALARMS, type Alarm, NOTHING_RAN, RELEASE_FAILING } from './alarm-list.ts';
import { type Fields, pascalCase, type Resource, type Resources, ref, substitute, whether } from './cloudformation.ts';

const TOPIC = [whether('HasAlarmTopic', ref('AlarmTopicArn'))];
const NOTIFICATIONS: Fields = { AlarmActions: TOPIC, OKActions: TOPIC };

function alarmId(name: string): string {
  return `${pascalCase(name)}Alarm`;
}

export function alarms(): Resources {
  const all = Object.entries(ALARMS).map(([name, alarm]) => [alarmId(name), alarmResource(name, alarm)]);
  const silent = Object.keys(ALARMS).filter((name) => isSilent(name));
  return {
    ...Object.fromEntries(all),
    [alarmId(NOTHING_RAN)]: compositeAlarm(
      NOTHING_RAN,
      `A loop of the stack has stopped running: the alarm ${NOTHING_RAN}-<loop> names it.`,
      substitute(anyOf(silent)),
      NOTIFICATIONS,
    ),
    // This alarm has no notifications, and rolls an update back. It combines others: an update can watch only five alarms.
    [alarmId(RELEASE_FAILING)]: compositeAlarm(RELEASE_FAILING, 'An alarm that rolls an update back is in alarm.', {
      'Fn::Join': ['', [substitute(anyOf(ALWAYS)), ...CONDITIONAL]],
    }),
  };
}

/** Returns whether an alarm sends no notification, because the alarm `nothing-ran` fires with it and sends one. */
function isSilent(name: string): boolean {
  return ALARMS[name]?.section === NOTHING_RAN;
}

function alarmResource(name: string, { description, query, section = name, condition, fires }: Alarm): Resource {
  return {
    Type: 'AWS::CloudWatch::Alarm',
    Condition: condition ?? 'HasAlarms',
    Properties: {
      AlarmName: substitute(`\${AWS::StackName}-${name}`),
      AlarmDescription: substitute(`${description}\nLogs Insights: ${query}\nRunbook: \${Runbook}#${section}`),
      ...(isSilent(name) ? {} : NOTIFICATIONS),
      ...fires,
    },
  };
}

function compositeAlarm(name: string, description: string, rule: Fields, notifications: Fields = {}): Resource {
  return {
    Type: 'AWS::CloudWatch::CompositeAlarm',
    Condition: 'HasAlarms',
    Properties: {
      AlarmName: substitute(`\${AWS::StackName}-${name}`),
      AlarmDescription: substitute(`${description}\nRunbook: \${Runbook}#${name}`),
      AlarmRule: rule,
      ...notifications,
    },
  };
}

/** The alarms that a bad release causes: alarms about the stack itself, and about many clusters at the same time. */
const OF_RELEASE = Object.entries(ALARMS).filter(([, { ofRelease }]) => ofRelease);
const ALWAYS = OF_RELEASE.filter(([, { condition }]) => condition === undefined).map(([name]) => name);
/** The conditional parts of the alarm rule. Each part refers to an alarm that only some stacks have. */
const CONDITIONAL = OF_RELEASE.flatMap(([name, { condition }]) =>
  condition === undefined ? [] : [whether(condition, substitute(` OR ${anyOf([name])}`), '')],
);

/** Returns a rule that is true if one of the alarms fires. The rule refers to the alarms, so that they are created first. */
function anyOf(names: readonly string[]): string {
  return names.map((name) => `ALARM("\${${alarmId(name)}}")`).join(' OR ');
}

/** Returns the conditions of the alarms that link to a section of docs/runbook.md. */
export function conditionsOf(section: string): string {
  const alarms = Object.entries(ALARMS).filter(([name, alarm]) => (alarm.section ?? name) === section);
  const conditions = alarms.map(([, { fires }]) => {
    const { ComparisonOperator: comparison, Threshold: threshold } = fires;
    const limit = typeof threshold === 'number' ? threshold : '`alarmSharePercent`';
    return `${measureOf(fires)} ${SIGNS[String(comparison)]} ${limit}`;
  });
  return [...new Set(conditions)].join(', ');
}

const SIGNS: Readonly<Record<string, string>> = {
  GreaterThanThreshold: '>',
  LessThanThreshold: '<',
  GreaterThanOrEqualToThreshold: '≥',
};

function measureOf({ Metrics, MetricName }: Fields): string {
  const [formula] = (Metrics as readonly Fields[] | undefined) ?? [];
  return String(formula?.['Label'] ?? MetricName);
}
