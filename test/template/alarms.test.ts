import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/cluster/cluster-spec.ts';
import { healthOf } from '../../lib/dispatch/fleet-figures.ts';
import type { RunRecord } from '../../lib/table/run-records.ts';
import {
  type CounterName,
  failedPassCounter,
  findingCounter,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
  type SampleName,
} from '../../lib/telemetry/telemetry.ts';
import {
  type AlarmState,
  compositeStates,
  type MetricAlarm,
  type Sample,
  statesOf,
} from '../support/cloudwatch-alarms.ts';
import { resolveTemplate } from '../support/resolve-template.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

const repository = path.join(import.meta.dirname, '..', '..');
const STACK = 'a-stack';

/** Every metric that the code may write: the compiler holds this list and the types of lib/telemetry together. */
const METRICS = Object.keys({
  apiserver_clusterip_repair_ip_errors_total: true,
  apiserver_clusterip_repair_reconcile_errors_total: true,
  apiserver_nodeport_repair_port_errors_total: true,
  apiserver_nodeport_repair_reconcile_errors_total: true,
  findings: true,
  passes: true,
  failures: true,
  eventsDropped: true,
  credentialsEnding: true,
  clockSkewed: true,
  lateProbes: true,
  lateTicks: true,
  unreadableTicks: true,
  unqueuedTicks: true,
  allocations: true,
  allocationsRefused: true,
  allocationRetries: true,
  staleClusterLists: true,
  clustersRegistered: true,
  suspects: true,
  clustersOverdue: true,
  clustersFailing: true,
  clustersWithoutLiveLease: true,
  clustersPaused: true,
  clustersWithFindings: true,
  clustersWithTwoOwners: true,
  clustersWithCredentialsEnding: true,
  fullestRangeOfFleetPercent: true,
  durationMs: true,
  leasesHeld: true,
  fullestRangePercent: true,
} satisfies Record<CounterName | SampleName, true>);

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}
interface Alarm extends MetricAlarm {
  readonly Namespace?: string;
  readonly AlarmDescription: string;
  readonly AlarmActions?: readonly string[];
}

const resolved = (parameters: Readonly<Record<string, string>>) =>
  Object.values(resolveTemplate(uncompiledTemplate(), { Admission: 'on', ...parameters }, STACK).Resources);
const resources = resolved({});
const nameOf = ({ AlarmName }: { readonly AlarmName: string }) => AlarmName.slice(STACK.length + 1);
const ofType = (type: string) => resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);
const alarms: readonly Alarm[] = ofType('AWS::CloudWatch::Alarm');
const [composite] = ofType('AWS::CloudWatch::CompositeAlarm');
const named = alarms.map((alarm) => [nameOf(alarm), alarm] as const);
const [dashboard] = ofType('AWS::CloudWatch::Dashboard');
const onDashboard = [...dashboard.DashboardBody.matchAll(/MetricName=\\"(\w+)\\"/g)].map(([, name]) => name);

function read(file: string): string {
  return readFileSync(path.join(repository, file), 'utf8');
}

function metricsOf(alarm: Alarm): readonly Metric[] {
  const ofFormula = alarm.Metrics?.flatMap(({ MetricStat }) => (MetricStat === undefined ? [] : [MetricStat.Metric]));
  return (ofFormula ?? [alarm]) as unknown as readonly Metric[];
}

describe('what is watched', () => {
  test.each(named)('the alarm %s is about metrics that the code or AWS writes', (_name, alarm) => {
    for (const { Namespace, MetricName, Dimensions } of metricsOf(alarm)) {
      if (Namespace.startsWith('AWS/')) continue;
      expect(Namespace).toBe(METRIC_NAMESPACE);
      expect(METRICS).toContain(MetricName);
      expect(Dimensions[0]).toEqual({ Name: 'service', Value: STACK });
      expect(LOOPS).toContain(Dimensions.find(({ Name }) => Name === 'loop')?.Value);
    }
  });

  test('every metric that the code writes is on the dashboard, and no other', () => {
    expect([...new Set(onDashboard)].sort()).toEqual([...METRICS].sort());
  });

  test('every metric is written somewhere in lib/', () => {
    const files = readdirSync(path.join(repository, 'lib'), { recursive: true, encoding: 'utf8' });
    const sources = files.filter((name) => name.endsWith('.ts') && !name.startsWith('telemetry'));
    const text = sources.map((name) => read(path.join('lib', name))).join('\n');
    const byFunction = LOOPS.flatMap((loop) => [
      findingCounter(loop, 'duplicate').name,
      findingCounter(loop, 'twoOwners').name,
      failedPassCounter(loop),
    ]);
    const unwritten = METRICS.filter(
      (name) =>
        !byFunction.includes(name as CounterName) && !(name in SAMPLE_UNITS) && !new RegExp(`\\b${name}\\b`).test(text),
    );
    expect(unwritten).toEqual([]);
  });

  test('the API of the admission webhook is watched in place of its URL', () => {
    const names = resolved({ AdmissionEndpoint: 'apiGateway' }).map(({ Properties }) => Properties.AlarmName);
    expect(names).toContain(`${STACK}-admission-api-failing`);
    expect(names).not.toContain(`${STACK}-admission-url-failing`);
  });
});

describe('the description of an alarm has', () => {
  const sections = [...read('docs/runbook.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title);
  const all = [...alarms, composite as Alarm];

  test.each(named)('%s: a query, and a link to its section of the runbook', (name, { AlarmDescription }) => {
    expect(AlarmDescription.length).toBeLessThan(900);
    const [, section] = /\nLogs Insights: .+\nRunbook: \S+#([\w-]+)$/.exec(AlarmDescription) ?? [];
    expect(sections).toContain(section);
    expect(name.startsWith(section ?? 'none') || section === 'nothing-ran' || section === 'admission').toBe(true);
  });

  test('the runbook has no section without an alarm', () => {
    const linked = all.map(({ AlarmDescription }) => AlarmDescription.replace(/^[\s\S]*#/, ''));
    expect(sections.toSorted()).toEqual([...new Set(linked)].toSorted());
  });

  test('messages that queries look for are messages that the code writes', () => {
    const messages = alarms.flatMap(({ AlarmDescription }) =>
      [...AlarmDescription.matchAll(/message (?:=|in \[) ?"([^"]+)"(?:, "([^"]+)")?/g)].flatMap(
        ([, ...texts]) => texts,
      ),
    );
    const text = readdirSync(path.join(repository, 'lib', 'dispatch'))
      .map((name) => read(`lib/dispatch/${name}`))
      .join('\n');
    for (const message of messages.filter((one) => one !== undefined)) expect(text).toContain(`'${message}'`);
  });
});

/** From what a stack measures in each minute to the states of all its alarms that notify. */
function statesOfAll(samples: readonly Sample[], minutes: number): ReadonlyMap<string, readonly AlarmState[]> {
  const states = new Map(alarms.map((alarm) => [alarm.AlarmName, statesOf(alarm, samples, minutes)]));
  const ofComposite = compositeStates(composite.AlarmRule, states);
  const notifying = alarms.filter(({ AlarmActions }) => AlarmActions !== undefined);
  return new Map([
    ...notifying.map((alarm) => [nameOf(alarm), states.get(alarm.AlarmName) ?? []] as const),
    [nameOf(composite), ofComposite],
  ]);
}

const FIGURES = [...METRICS].filter((name) => /^clusters|OfFleet/.test(name));

interface Minute {
  readonly runs: boolean;
  /** Figures of the fleet that are not zero. */
  readonly figures?: Readonly<Record<string, number>>;
  readonly counters?: Readonly<Record<string, number>>;
}

/** What a stack measures that has one cluster: functions count their passes, and one of them the figures of the fleet. */
function measured(minutes: number, at: (minute: number) => Minute): Sample[] {
  return Array.from({ length: minutes }, (_, atMinute) => {
    const { runs, figures = {}, counters = {} } = at(atMinute);
    const isDue = (loop: Loop) => atMinute % Math.max(1, SCHEDULE_SECONDS[loop] / 60) === 0;
    const passes = LOOPS.filter(isDue).map((loop) => ({ atMinute, metric: 'passes', loop: loop as string, value: 1 }));
    const ofFleet = { ...Object.fromEntries(FIGURES.map((name) => [name, 0])), clustersRegistered: 1, ...figures };
    const gauges = Object.entries(ofFleet).map(([metric, value]) => ({
      atMinute,
      metric,
      loop: 'kubernetes-service',
      value,
    }));
    const counted = Object.entries(counters).map(([metric, value]) => ({
      ...{ atMinute, metric, value },
      ...(METRICS.includes(metric as CounterName) && { loop: 'kubernetes-service' }),
    }));
    return runs ? [...passes, ...gauges, ...counted] : counted;
  }).flat();
}

/** By then every loop of a new stack has run. */
const STARTED_MINUTES = 10;

/** Minutes in which it begins and ends to be in alarm, once the stack has started. */
function changesOf(states: readonly AlarmState[]): readonly number[] {
  const alarming = states.map((state, minute) => state === 'ALARM' && minute >= STARTED_MINUTES);
  return alarming.flatMap((is, minute) => (is === (alarming[minute - 1] ?? false) ? [] : [minute]));
}

describe('in the life of a stack', () => {
  test('the first deployment notifies that nothing runs until each loop has run, and nothing else', () => {
    const states = statesOfAll(
      measured(180, (minute) => ({ runs: minute >= 3 })),
      180,
    );
    for (const [name, ofAlarm] of states) {
      const isSilence = name === 'nothing-ran';
      expect({ name, first: ofAlarm.includes('ALARM'), later: changesOf(ofAlarm) }).toEqual({
        name,
        first: isSilence,
        later: [],
      });
    }
  });

  test('an outage of an hour is one alarm, which ends with it', () => {
    const states = statesOfAll(
      measured(400, (minute) => ({ runs: minute < 200 || minute >= 260 })),
      400,
    );
    for (const [name, ofAlarm] of states) {
      const [begins = 0, ends = 0, ...others] = changesOf(ofAlarm);
      if (name !== 'nothing-ran') expect({ name, changes: changesOf(ofAlarm) }).toEqual({ name, changes: [] });
      else {
        expect(others).toEqual([]);
        expect([begins - 200, ends - 260].every((late) => late >= 1 && late <= 10)).toBe(true);
      }
    }
  });

  test('an outage soon after the first deployment is an alarm', () => {
    const ofComposite = statesOfAll(
      measured(120, (minute) => ({ runs: minute >= 3 && minute < 45 })),
      120,
    ).get('nothing-ran');
    expect(changesOf(ofComposite ?? [])).toEqual([expect.any(Number)]);
  });

  const BROKEN: readonly (readonly [string, Omit<Minute, 'runs'>])[] = [
    ['clusters-overdue', { figures: { clustersOverdue: 1 } }],
    ['clusters-failing', { figures: { clustersFailing: 1 } }],
    ['no-live-lease', { figures: { clustersWithoutLiveLease: 1 } }],
    ['findings', { figures: { clustersWithFindings: 1 } }],
    ['two-owners', { figures: { clustersWithTwoOwners: 1 } }],
    ['credentials-ending', { figures: { clustersWithCredentialsEnding: 1 } }],
    ['range-filling', { figures: { fullestRangeOfFleetPercent: 81 } }],
    ['range-nearly-full', { figures: { fullestRangeOfFleetPercent: 96 } }],
    ['late-ticks', { counters: { lateTicks: 3 } }],
    ['late-probes', { counters: { lateProbes: 2 } }],
    ['unqueued-ticks', { counters: { unqueuedTicks: 5 } }],
    ['clock-skewed', { counters: { clockSkewed: 1 } }],
    ['admission-errors', { counters: { Errors: 1 } }],
    ['admission-throttled', { counters: { Throttles: 1 } }],
    ['admission-slow', { counters: { Duration: 4000 } }],
    ['admission-url-failing', { counters: { Url5xxCount: 1 } }],
    ['clusters-lost', { figures: { clustersRegistered: 0 } }],
  ];

  test('every alarm that notifies is tried', () => {
    const tried = [...BROKEN.map(([name]) => name), 'nothing-ran'];
    expect(tried.toSorted()).toEqual([...statesOfAll([], 1).keys()].toSorted());
  });

  test.each(BROKEN)('%s begins once and ends once with what it is about', (name, broken) => {
    const isBroken = (minute: number) => minute >= 200 && minute < 260;
    const samples = measured(400, (minute) => ({ runs: true, ...(isBroken(minute) && broken) }));
    const [begins = 0, ends = 0, ...others] = changesOf(statesOfAll(samples, 400).get(name) ?? []);
    expect(others).toEqual([]);
    expect(begins - 200).toBeGreaterThanOrEqual(1);
    expect(begins - 200).toBeLessThanOrEqual(25);
    // A loss is known by the step alone, and is shown for an hour.
    expect(Math.abs(ends - (name === 'clusters-lost' ? 270 : 260))).toBeLessThanOrEqual(25);
  });

  test('a finding and a full range of a cluster that is repaired once an hour are one alarm each, and none is overdue', () => {
    const intervalSeconds = Object.fromEntries(LOOPS.map((loop) => [loop, 3600])) as Record<Loop, number>;
    const entry = {
      name: 'hourly',
      intervalSeconds,
      publishes: true,
      paused: undefined,
      owner: undefined,
      writtenAtMs: 0,
    };
    const healthAt = (minute: number) => {
      const startedAtMs = (minute - (minute % 60)) * 60_000;
      const counts = minute >= 120 && minute < 240 ? { needAttention: 1, allocated: 9, capacity: 10 } : {};
      const record: RunRecord = {
        ...{
          passId: 'p',
          startedAtMs,
          lastSuccessAtMs: startedAtMs,
          durationMs: 1,
          outcome: 'succeeded',
          mode: 'enforce',
        },
        ...{ observed: false, counts, findings: [], failuresInARow: 0, events: {} },
      };
      const records = Object.fromEntries(LOOPS.map((loop) => [loop, record]));
      return healthOf(entry, records, { nowMs: minute * 60_000, pausedAll: undefined });
    };
    const samples = measured(400, (minute) => {
      const { withFindings, fullestRangePercent, overdue } = healthAt(minute);
      const figures = {
        ...{ clustersWithFindings: Number(withFindings), fullestRangeOfFleetPercent: fullestRangePercent },
        clustersOverdue: overdue.length,
      };
      return { runs: true, figures };
    });
    const states = statesOfAll(samples, 400);
    const changes = [...states].map(([name, ofAlarm]) => [name, changesOf(ofAlarm)] as const);
    expect(Object.fromEntries(changes.filter(([, minutes]) => minutes.length > 0))).toEqual({
      findings: [122, 241],
      'range-filling': [122, 241],
    });
  });

  test('deleting one cluster of a fleet is no loss, and a growing fleet neither', () => {
    const registered = (minute: number) => (minute < 100 ? 1 : minute < 200 ? 90 : 60);
    const samples = measured(300, (minute) => ({ runs: true, figures: { clustersRegistered: registered(minute) } }));
    expect(changesOf(statesOfAll(samples, 300).get('clusters-lost') ?? [])).toEqual([]);
  });

  test('a single late tick, and one failed answer, are no alarm', () => {
    const samples = measured(300, (minute) => ({
      runs: true,
      ...(minute === 200 && { counters: { lateTicks: 1, lateProbes: 1, clockSkewed: 1, Errors: 1, Url5xxCount: 1 } }),
    }));
    for (const [name, ofAlarm] of statesOfAll(samples, 300)) {
      expect({ name, changes: changesOf(ofAlarm) }).toEqual({ name, changes: [] });
    }
  });
});

test('metrics have the dimensions that alarms ask for', async () => {
  const program = `
    import { powertoolsTelemetry } from './lib/telemetry/powertools.ts';
    const telemetry = powertoolsTelemetry({ loop: 'kubernetes-service' });
    telemetry.count('clustersOverdue', 1);
    telemetry.count('findings', 1, { type: 'twoOwners' });
    telemetry.flush();
  `;
  const args = ['--input-type=module-typescript', '--eval', program];
  const env = { ...process.env, POWERTOOLS_SERVICE_NAME: 'a-stack' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repository, env });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const written = lines.map((line) =>
    line._aws.CloudWatchMetrics[0].Dimensions[0].map((name: string) => `${name} ${line[name]}`),
  );
  expect(written).toContainEqual(['service a-stack', 'loop kubernetes-service']);
  expect(written).toContainEqual(['service a-stack', 'loop kubernetes-service', 'type twoOwners']);
  const wanted = alarms
    .flatMap(metricsOf)
    .filter(({ Namespace }) => Namespace === METRIC_NAMESPACE)
    .map(({ Dimensions }) => Dimensions.map(({ Name }) => Name).join());
  expect([...new Set(wanted)]).toEqual(['service,loop']);
});
