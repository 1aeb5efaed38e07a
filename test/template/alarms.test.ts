import { expect, test } from '@jest/globals';
import { parameterTable } from '../../deploy/parameters.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import {
  type CounterName,
  failedPassCounter,
  findingCounter,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
} from '../../lib/telemetry/telemetry.ts';
import { found } from '../support/found.ts';
import { filesInRepository, readInRepository } from '../support/repository.ts';
import { COMPOSITES, METRIC_ALARMS, metricsOf, nameOf, resourcesOf, STACK, type StackAlarm } from './stack-alarms.ts';

/** Every metric that the code can write: the members of the types of counters, and the samples. */
const METRICS = [
  ...Object.keys(SAMPLE_UNITS),
  ...[...readInRepository('lib/telemetry/telemetry.ts').matchAll(/^ {2}\| '(\w+)'/gm)].map(([, name = '']) => name),
];

const named = METRIC_ALARMS.map((alarm) => [nameOf(alarm), alarm] as const);
const dashboard = resourcesOf().find(({ Type }) => Type === 'AWS::CloudWatch::Dashboard')?.Properties;
const onDashboard = [...dashboard.DashboardBody.matchAll(/MetricName=\\"(\w+)\\"/g)].map(([, name]) => name);

test.each(named)('the alarm %s uses metrics that the code or AWS writes', (_name, alarm) => {
  for (const { Namespace, MetricName, Dimensions } of metricsOf(alarm).map(({ Metric }) => Metric)) {
    if (Namespace.startsWith('AWS/')) continue;
    expect(Namespace).toBe(METRIC_NAMESPACE);
    expect(METRICS).toContain(MetricName);
    // Metrics have these dimensions: see test/telemetry/telemetry.test.ts.
    expect(Dimensions.map(({ Name }) => Name)).toEqual(['service', 'loop']);
    expect(Dimensions[0]?.Value).toBe(STACK);
    expect(LOOPS).toContain(Dimensions[1]?.Value);
  }
});

test('the dashboard contains exactly the metrics that the code writes', () => {
  expect([...new Set(onDashboard)].sort()).toEqual([...METRICS].sort());
});

test('every metric is written by code in lib/', () => {
  const files = filesInRepository('lib').filter((name) => name.endsWith('.ts') && !name.startsWith('lib/telemetry'));
  const text = files.map(readInRepository).join('\n');
  const byFunction = LOOPS.flatMap((loop) => [
    findingCounter(loop, 'duplicate'),
    findingCounter(loop, 'twoOwners'),
    failedPassCounter(loop),
  ]);
  const unwritten = METRICS.filter(
    (name) =>
      !byFunction.includes(name as CounterName) && !(name in SAMPLE_UNITS) && !new RegExp(`\\b${name}\\b`).test(text),
  );
  expect(unwritten).toEqual([]);
});

test('if the admission webhook uses API Gateway instead of a function URL, an alarm watches the API', () => {
  const names = resourcesOf({ AdmissionEndpoint: 'apiGateway' }).map(({ Properties }) => Properties.AlarmName);
  expect(names).toContain(`${STACK}-admission-api-failing`);
  expect(names).not.toContain(`${STACK}-admission-url-failing`);
});

const sections = [...readInRepository('docs/runbook.md').matchAll(/^## ([a-z].+)$/gm)].map(([, title]) => title);
const all = [...METRIC_ALARMS, ...COMPOSITES];

test.each(named)('the description of alarm %s has a query and a link to the runbook', (name, { AlarmDescription }) => {
  expect(AlarmDescription.length).toBeLessThan(900);
  const [, section] = /\nLogs Insights: .+\nRunbook: \S+#([\w-]+)$/.exec(AlarmDescription) ?? [];
  expect(sections).toContain(section);
  expect(name).toContain(section);
});

test('every section of the runbook belongs to an alarm', () => {
  const linked = all.map(({ AlarmDescription }) => AlarmDescription.replace(/^[\s\S]*#/, ''));
  expect(sections.toSorted()).toEqual([...new Set(linked)].toSorted());
});

test('every log message, parameter and error that the runbook quotes exists in the code', () => {
  const text = filesInRepository('lib', 'deploy', 'cli', 'functions')
    .filter((name) => /\.(ts|yml|yaml|json)$/.test(name))
    .map(readInRepository)
    .concat(parameterTable())
    .join('\n');
  const runbook = readInRepository('docs/runbook.md').replace(/<!-- table: alarms -->\n\n(?:\|.*\n)+/, '');
  const words = [
    ...runbook.matchAll(/`([A-Za-z][\w.]*)(?:=\w+)?`|(?<=log line )"([^"]+)"|`([a-z]+(?: [a-z]+)+)` in the log/g),
  ];
  const quoted = words.map(([, word, line, message]) => word ?? line ?? message ?? '');
  expect(quoted.length).toBeGreaterThan(30);
  expect(quoted.filter((word) => !text.includes(word))).toEqual([]);
});

test('the code writes every log message that a query of an alarm searches for', () => {
  const messages = METRIC_ALARMS.flatMap(({ AlarmDescription }) =>
    [...AlarmDescription.matchAll(/message (?:=|in \[) ?"([^"]+)"(?:, "([^"]+)")?/g)].flatMap(([, one, other]) =>
      [one, other].filter((text) => text !== undefined),
    ),
  );
  const text = filesInRepository('lib/dispatch').map(readInRepository).join('\n');
  expect(messages.length).toBeGreaterThan(5);
  expect(messages.filter((message) => !text.includes(`'${message}'`))).toEqual([]);
});

type State = 'OK' | 'ALARM' | 'retained';
type Value = number | undefined;
/** The values of the metrics of an alarm in one period, in the order of the alarm's formula. */
type Values = readonly Value[];

/** The periods that CloudWatch reads in addition to those that it evaluates. Their values replace missing ones. */
const EXTRA_PERIODS = 2;
const COMPARISONS: Readonly<Record<string, (value: number, threshold: number) => boolean>> = {
  LessThanThreshold: (value, threshold) => value < threshold,
  GreaterThanThreshold: (value, threshold) => value > threshold,
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
};

/** Returns the state of an alarm as CloudWatch evaluates it. The tables in the test below are the documented ones. */
function stateOf(alarm: Omit<StackAlarm, 'AlarmName' | 'AlarmDescription'>, datapoints: readonly Value[]): State {
  const { DatapointsToAlarm: needed, EvaluationPeriods: evaluated } = alarm;
  const latest = datapoints.slice(-evaluated);
  const isWhole = latest.every((value) => value !== undefined);
  const range = isWhole ? latest : datapoints.slice(-evaluated - EXTRA_PERIODS);
  const known = range.filter((value) => value !== undefined).slice(-evaluated);
  const breaches = found(COMPARISONS[alarm.ComparisonOperator]);
  const breaching = known.filter((value) => breaches(value, Number(alarm.Threshold))).length;
  const isFilledIn = alarm.TreatMissingData === 'breaching' ? evaluated - known.length : 0;
  if (breaching + isFilledIn >= needed) return 'ALARM';
  return alarm.TreatMissingData === 'ignore' && breaching === known.length ? 'retained' : 'OK';
}

const sum = (values: Values) => values.reduce<number>((total, value) => total + (value ?? 0), 0);
const percent = (part: Value, whole: Value) => (part === undefined || !whole ? undefined : (100 * part) / whole);

/** The formulas of deploy/alarm-list.ts. `FILL` has no effect on a metric without any value. */
const FORMULAS: Readonly<Record<string, (now: Values, before: Values) => Value>> = {
  'SUM(METRICS())': (now) => (now.every((value) => value === undefined) ? undefined : sum(now)),
  '100 * m1 / m2': ([one, other]) => percent(one, other),
  'IF(m2 > 0, 100 * m1 / m2, 0)': ([one, other]) => (other === 0 ? 0 : percent(one, other)),
  'IF(FILL(m1, 0) > 0, 100 * FILL(m2, 0) / FILL(m1, 0), 0)': ([one, other]) => percent(other ?? 0, one) ?? 0,
  'IF(DIFF(m1) < 0, -100 * DIFF(m1) / (m1 - DIFF(m1)), 0)': ([now], [before]) =>
    now === undefined || before === undefined ? undefined : Math.max(0, 100 * (1 - now / before)),
};

function stateAfter(alarm: StackAlarm, periods: readonly Values[]): State {
  const expression = alarm.Metrics?.find(({ Expression }) => Expression !== undefined)?.Expression;
  const formula = expression === undefined ? ([value]: Values) => value : found(FORMULAS[expression]);
  return stateOf(
    alarm,
    periods.map((now, at) => formula(now, periods[at - 1] ?? [])),
  );
}

/** From https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html, of three periods. */
test.each<[number, string, State, State, State]>([
  [3, '0 - X - X', 'OK', 'OK', 'OK'],
  [3, '- - - - 0', 'OK', 'OK', 'OK'],
  [3, '- - - - -', 'retained', 'ALARM', 'OK'],
  [3, '0 X X - X', 'ALARM', 'ALARM', 'ALARM'],
  [3, '- - X - -', 'retained', 'ALARM', 'OK'],
  [2, '0 - X - X', 'ALARM', 'ALARM', 'ALARM'],
  [2, '0 0 X 0 X', 'ALARM', 'ALARM', 'ALARM'],
  [2, '0 - X - -', 'OK', 'ALARM', 'OK'],
  [2, '- - - - 0', 'OK', 'ALARM', 'OK'],
  [2, '- - - X -', 'retained', 'ALARM', 'OK'],
])('an alarm that needs %i of 3 datapoints has the documented state for %s', (needed, shown, ...states) => {
  const datapoints = shown.split(' ').map((one) => ({ X: 1, '0': 0 })[one]);
  const alarm = { ComparisonOperator: 'GreaterThanThreshold', Threshold: 0, EvaluationPeriods: 3 };
  const stateWith = (TreatMissingData: string) =>
    stateOf({ ...alarm, DatapointsToAlarm: needed, TreatMissingData }, datapoints);
  expect(['ignore', 'breaching', 'notBreaching'].map(stateWith)).toEqual(states);
});

/**
 * For each alarm: statistic and period of its metrics, M of N datapoints and the meaning of missing ones, the values of its metrics
 * that just do not cause it, and values that must cause it.
 */
const CASES: readonly (readonly [string, string, healthy: Values, broken: Values])[] = [
  ...LOOPS.map((loop) => {
    const rule = loop.endsWith('-repair') ? '180, 3 of 3' : '60, 5 of 5';
    return [`nothing-ran-${loop}`, `SampleCount ${rule} breaching`, [1], [undefined]] as const;
  }),
  ...[...LOOPS, 'deregister', 'allocate', 'admission', 'doctor'].map((name) => {
    const period = name.endsWith('-repair') ? 180 : 60;
    return [`${name}-errors`, `Sum ${period}, 2 of 3 notBreaching`, [4, 100], [5, 100]] as const;
  }),
  ['figures-missing', 'Maximum Sum 60, 2 of 2 breaching', [1_000, 900], [1_000, 899]],
  ['figures-missing', 'Maximum Sum 60, 2 of 2 breaching', [1_000, 1_000], [undefined, undefined]],
  ['figures-missing', 'Maximum Sum 60, 2 of 2 breaching', [1, 1], [0, 0]],
  ['clusters-overdue', 'Sum 60, 2 of 2 ignore', [49, 1_000], [50, 1_000]],
  ['clusters-failing', 'Sum 60, 10 of 10 ignore', [49, 1_000], [50, 1_000]],
  ['findings', 'Sum 60, 2 of 2 ignore', [49, 1_000], [50, 1_000]],
  ['credentials-ending', 'Sum 60, 2 of 2 ignore', [49, 1_000], [50, 1_000]],
  ['no-live-lease', 'Sum 60, 3 of 3 ignore', [0], [1]],
  ['two-owners', 'Sum 60, 2 of 2 ignore', [0], [1]],
  ['range-filling', 'Maximum 60, 2 of 2 ignore', [80], [81]],
  ['range-nearly-full', 'Maximum 60, 2 of 2 ignore', [95], [96]],
  ['late-ticks', 'Sum 300, 3 of 3 notBreaching', [], [undefined, 1]],
  ['late-probes', 'Sum 300, 2 of 3 notBreaching', [], [undefined, 1]],
  ['unqueued-ticks', 'Sum 300, 2 of 3 notBreaching', [], [undefined, 1]],
  ['clock-skewed', 'Sum 300, 3 of 3 notBreaching', [], [undefined, 1]],
  ['clusters-lost', 'Maximum 300, 1 of 12 ignore', [200], [99]],
  ['admission-throttled', 'Sum 60, 2 of 3 notBreaching', [], [1]],
  ['admission-slow', 'p99 60, 2 of 3 notBreaching', [3_000], [3_001]],
  ['admission-url-failing', 'Sum 60, 2 of 3 notBreaching', [], [1]],
];

const alarmOf = (name: string) => found(METRIC_ALARMS.find((one) => nameOf(one) === name));

test('every alarm has a test case', () => {
  const tried = new Set(CASES.map(([name]) => name));
  expect([...tried].sort()).toEqual(METRIC_ALARMS.map(nameOf).sort());
});

test.each(CASES)(
  'the alarm %s (%s) is OK with the values %j, changes to ALARM after enough periods with the values %j, and is OK again with the first values',
  (name, rule, healthy, broken) => {
    const alarm = alarmOf(name);
    const { DatapointsToAlarm: needed, EvaluationPeriods: evaluated } = alarm;
    const stats = metricsOf(alarm);
    const measured = [...new Set(stats.map(({ Stat }) => Stat)), stats[0]?.Period].join(' ');
    expect(`${measured}, ${needed} of ${evaluated} ${alarm.TreatMissingData}`).toBe(rule);
    const well = Array<Values>(evaluated + EXTRA_PERIODS + 1).fill(healthy);
    const brokenFor = (periods: number) => stateAfter(alarm, [...well, ...Array<Values>(periods).fill(broken)]);
    expect([brokenFor(0), brokenFor(needed - 1)]).toEqual(['OK', 'OK']);
    // Earlier values replace missing ones, so that an alarm on missing values comes later. FILL prevents that.
    const late = name.startsWith('nothing-ran') ? EXTRA_PERIODS : 0;
    expect(brokenFor(needed + late)).toBe('ALARM');
    expect(stateAfter(alarm, [...Array<Values>(needed).fill(broken), ...well])).toBe('OK');
  },
);

test('if no metric has a value, only the alarms about missing runs and missing figures fire', () => {
  const firing = METRIC_ALARMS.filter((alarm) => stateAfter(alarm, Array(15).fill([])) === 'ALARM').map(nameOf);
  expect(firing.sort()).toEqual(['figures-missing', ...LOOPS.map((loop) => `nothing-ran-${loop}`)].sort());
});

test.each<[string, string, Values, ...Values[]]>([
  ['a part of the fleet that is counted one minute late', 'figures-missing', [10, 10], [10, 7], [10, 13]],
  ['a growing fleet', 'clusters-lost', [1], [90]],
  ['the deletion of half of the clusters', 'clusters-lost', [90], [45]],
])('%s does not cause the alarm %s', (_, name, before, ...periods) => {
  expect(stateAfter(alarmOf(name), [...Array<Values>(15).fill(before), ...periods])).toBe('OK');
});

test('the composite alarms release-failing and nothing-ran combine exactly the expected alarms', () => {
  const combined = Object.fromEntries(
    COMPOSITES.map((alarm) => [
      nameOf(alarm),
      alarm.AlarmRule.split(' OR ').map((term) => nameOf({ AlarmName: term.slice('ALARM("'.length, -'")'.length) })),
    ]),
  );
  const silent = LOOPS.map((loop) => `nothing-ran-${loop}`);
  const errors = CASES.flatMap(([name]) => (name.endsWith('-errors') ? [name] : []));
  const admission = ['throttled', 'slow', 'url-failing'].map((name) => `admission-${name}`);
  expect(combined['nothing-ran']?.sort()).toEqual(silent.sort());
  expect(combined['release-failing']?.sort()).toEqual(
    [...silent, ...errors, ...admission, 'figures-missing', 'clusters-overdue', 'clusters-lost'].sort(),
  );
});
