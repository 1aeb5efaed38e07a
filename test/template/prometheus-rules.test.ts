import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { ALARM_GUIDES } from '../../cli/explain/explain-alarms.ts';
import { ALARMS } from '../../deploy/alarm-list.ts';
import { grafanaDashboard, prometheusRules, RULES } from '../../deploy/prometheus-rules.ts';
import { FINDINGS_THAT_STAY } from '../../lib/cluster/finding.ts';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const promtool = join(
  execFileSync('bash', [join(REPOSITORY, 'test/template/unpack-promtool.sh'), '--folder'], { encoding: 'utf8' }).trim(),
  'promtool',
);

function written(name: string, content: object): string {
  const file = join(folder, name);
  writeFileSync(file, stringify(content));
  return file;
}

const rules = written('rules.yml', parse(prometheusRules()).spec);
const run = (...words: string[]) => execFileSync(promtool, words, { encoding: 'utf8' });

test('promtool accepts the rules', () => {
  expect(run('check', 'rules', rules)).toContain(`SUCCESS: ${Object.keys(RULES).length} rules found`);
});

const sections = Object.entries(ALARMS).map(([name, { section = name }]) => section);

test('each alarm has a guide, and each guide belongs to an alarm', () => {
  expect(Object.keys(ALARM_GUIDES).sort()).toEqual([...new Set([...sections, 'release-failing'])].sort());
});

test('each alarm that applies to kbctl run has a Prometheus rule, and no other alarm has one', () => {
  const without = Object.entries(ALARM_GUIDES).flatMap(([section, { run }]) => (run === '' ? [section] : []));
  expect([...Object.keys(RULES), ...without].sort()).toEqual([...new Set([...sections, 'release-failing'])].sort());
});

const P = 'kube_bootstrap_controller_';
const LOOP = '{loop="kubernetes-service"}';
/** Samples of a healthy fleet, one a minute. */
const HEALTHY: Readonly<Record<string, string>> = {
  [`loop_invoked_timestamp_seconds${LOOP}`]: '0+60x90',
  [`ticks_total{loop="kubernetes-service",outcome="failed"}`]: '0x90',
  figures_timestamp_seconds: '0+60x90',
  table_reachable: '1x90',
  ...{ clusters_registered: '200x90', clusters_judged: '200x90', clusters_overdue: '0x90', clusters_failing: '0x90' },
  ...{ clusters_without_live_lease: '0x90', clusters_with_findings: '0x90', clusters_with_two_owners: '0x90' },
  ...{ clusters_with_credentials_ending: '0x90', fullest_range_of_fleet_percent: '40x90' },
  ...Object.fromEntries(['late_ticks', 'late_probes', 'clock_skewed'].map((name) => [`${name}_total${LOOP}`, '0x90'])),
  'api_server_lease_valid{cluster="prod-eu-1",address="192.0.2.1"}': '1x90',
};

/** The samples that differ while something is wrong, by the alarm that they must fire. */
const WRONG: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'nothing-ran': { [`loop_invoked_timestamp_seconds${LOOP}`]: '0+60x60 3600x30' },
  errors: { [`ticks_total{loop="kubernetes-service",outcome="failed"}`]: '0x60 0+6x30' },
  'figures-missing': { figures_timestamp_seconds: '0+60x60 3600x30' },
  'clusters-overdue': { clusters_overdue: '0x60 1x30' },
  'clusters-failing': { clusters_failing: '0x60 1x30' },
  'no-live-lease': {
    clusters_without_live_lease: '0x60 1x30',
    'api_server_lease_valid{cluster="prod-eu-1",address="192.0.2.1"}': '1x60 0x30',
  },
  findings: { clusters_with_findings: '0x60 1x30' },
  'two-owners': { clusters_with_two_owners: '0x60 1x30' },
  'credentials-ending': { clusters_with_credentials_ending: '0x60 1x30' },
  'range-filling': { fullest_range_of_fleet_percent: '40x60 81x30' },
  'range-nearly-full': { fullest_range_of_fleet_percent: '40x60 96x30' },
  'late-ticks': { [`late_ticks_total${LOOP}`]: '0x60 0+1x30' },
  'late-probes': { [`late_probes_total${LOOP}`]: '0x60 0+1x30' },
  'clock-skewed': { [`clock_skewed_total${LOOP}`]: '0x60 0+1x30' },
  'clusters-lost': { clusters_registered: '200x60 90x30', clusters_judged: '200x60 90x30' },
};

function seriesOf(samples: Readonly<Record<string, string>>) {
  return Object.entries(samples).map(([name, values]) => ({ series: `${P}${name}`, values }));
}

function alertsOf(samples: Readonly<Record<string, string>>, at: string, wanted: readonly string[]) {
  const exp_samples = wanted.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 }));
  const expr = 'count by (alertname) (ALERTS{alertstate="firing"})';
  const input_series = seriesOf({ ...HEALTHY, ...samples });
  const tests = [{ interval: '1m', input_series, promql_expr_test: [{ expr, eval_time: at, exp_samples }] }];
  return written('test.yml', { rule_files: [rules], evaluation_interval: '1m', tests });
}

test('the alert about findings lists the clusters of every type of finding that the alert counts', () => {
  const { clusters = '' } = RULES['findings'] ?? {};
  const named = /type=~"([^"]+)"/.exec(clusters)?.[1]?.split('|') ?? [];
  expect(named.toSorted()).toEqual([...FINDINGS_THAT_STAY].sort());
});

test('no alert fires for a healthy fleet', () => {
  expect(run('test', 'rules', alertsOf({}, '85m', []))).toContain('SUCCESS');
});

/** Series of a process that has run no pass, and of a cluster whose range has no capacity. */
const IDLE: Readonly<Record<string, string>> = {
  'pass_duration_seconds_bucket{loop="kubernetes-service",le="1"}': '0x90',
  'pass_duration_seconds_bucket{loop="kubernetes-service",le="+Inf"}': '0x90',
  'passes_total{loop="kubernetes-service"}': '0x90',
  'failures_total{loop="kubernetes-service"}': '0x90',
  'range_used{cluster="a",range="IPv4"}': '0x90',
  'range_capacity{cluster="a",range="IPv4"}': '0x90',
  cluster_series: '1x90',
};

const PANELS: readonly { title: string; targets: readonly { expr: string }[] }[] = JSON.parse(
  grafanaDashboard(),
).panels;
const queries = Object.fromEntries(PANELS.map(({ title, targets }) => [title, targets.map(({ expr }) => expr).join()]));

test.each(Object.entries(queries))('without data or with zeros, panel %s shows no error and no NaN', (title, expr) => {
  const none = (type: string) => [{ labels: `{${type}="none"}`, value: 0 }];
  const zero: Readonly<Record<string, object[]>> = { Findings: none('type'), 'Firing alarms': none('alertname') };
  const testsOf = (samples: Readonly<Record<string, string>>, expected: readonly object[]) => ({
    interval: '1m',
    input_series: seriesOf(samples),
    promql_expr_test: [
      ...(expected.length > 0 ? [{ expr, eval_time: '85m', exp_samples: expected }] : []),
      { expr: `sum(${expr}) != sum(${expr})`, eval_time: '85m', exp_samples: [] },
    ],
  });
  const nothing = title === 'Firing alarms' ? none('alertname') : [];
  const tests = [testsOf({}, nothing), testsOf({ ...HEALTHY, ...IDLE }, zero[title] ?? [])];
  expect(run('test', 'rules', written('panel.yml', { evaluation_interval: '1m', tests }))).toContain('SUCCESS');
});

test('each rule has a test case with metrics that make the rule fire', () => {
  expect(Object.keys(WRONG).sort()).toEqual(Object.keys(RULES).sort());
});

test.each(Object.entries(WRONG))('the alert %s fires after its metrics are wrong, and not before', (alert, samples) => {
  expect(run('test', 'rules', alertsOf(samples, '59m', []))).toContain('SUCCESS');
  const fires = alert === 'range-nearly-full' ? ['range-filling', alert] : [alert];
  expect(run('test', 'rules', alertsOf(samples, '84m', fires))).toContain('SUCCESS');
});
