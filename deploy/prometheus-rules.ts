import { stringify } from 'yaml';
import { ALARM_GUIDES, DOCTOR } from '../cli/explain/explain-alarms.ts';
import { FINDINGS_THAT_STAY } from '../lib/cluster/finding.ts';
import { defined } from '../lib/util/values.ts';
import { ALARMS } from './alarm-list.ts';
import { conditionsOf } from './alarms.ts';

interface Rule {
  readonly expr: string;
  readonly minutes: number;
  /** A query with a series for each affected cluster. */
  readonly clusters?: string;
  /** The fault. Default: the description of the alarm in CloudWatch. */
  readonly summary?: string;
}

const NAME = 'kube-bootstrap-controller';
const P = 'kube_bootstrap_controller_';
const FAILING = clustersOf(`${P}loop_failures_in_a_row`, '> 0');
const figure = (name: string, above = 0) => `max(${P}${name}) > ${above}`;
const increase = (name: string) => `sum(increase(${P}${name}_total[5m])) > 0`;
const fullerThan = (share: number) => clustersOf(`${P}range_used / ${P}range_capacity`, `> ${share}`);
const ofFindings = (type: string) => clustersOf(`${P}findings{type=~"${type}"}`, '> 0');

/** Returns a query with a series for each affected cluster, but at most twenty, because an alert names all of them. */
function clustersOf(metric: string, condition: string): string {
  return `topk(20, max by (cluster) (${metric}) ${condition})`;
}

function rule(minutes: number, expr: string, clusters?: string): Rule {
  return { minutes, expr, ...defined({ clusters }) };
}

/** The rule of each runbook section for `kbctl run --table`. A rule with `clusters` fires if one cluster is affected. */
export const RULES: Readonly<Record<string, Rule>> = {
  'nothing-ran': {
    ...rule(5, `time() - max by (loop) (${P}loop_invoked_timestamp_seconds) > 540 or absent(${P}table_reachable)`),
    summary: 'A loop has not run.',
  },
  errors: {
    ...rule(2, `sum by (loop) (increase(${P}ticks_total{outcome="failed"}[2m])) > 0`),
    summary: 'Ticks could not be claimed, because the table did not answer.',
  },
  'figures-missing': rule(
    3,
    `absent(${P}clusters_judged) or time() - max(${P}figures_timestamp_seconds) > 180 or 100 * max(${P}clusters_judged) / max(${P}clusters_registered) < 90`,
  ),
  'clusters-overdue': rule(2, figure('clusters_overdue'), FAILING),
  'clusters-failing': rule(10, figure('clusters_failing'), FAILING),
  'no-live-lease': rule(3, figure('clusters_without_live_lease'), clustersOf(`${P}api_server_lease_valid`, '== 0')),
  findings: rule(2, figure('clusters_with_findings'), ofFindings([...FINDINGS_THAT_STAY].join('|'))),
  'two-owners': rule(2, figure('clusters_with_two_owners'), ofFindings('twoOwners')),
  'credentials-ending': rule(2, figure('clusters_with_credentials_ending')),
  'range-filling': rule(2, figure('fullest_range_of_fleet_percent', 80), fullerThan(0.8)),
  'range-nearly-full': rule(2, figure('fullest_range_of_fleet_percent', 95), fullerThan(0.95)),
  'late-ticks': rule(10, increase('late_ticks')),
  'late-probes': rule(10, increase('late_probes')),
  'clock-skewed': rule(10, increase('clock_skewed')),
  'clusters-lost': rule(1, `max(${P}clusters_registered) < 0.5 * max(max_over_time(${P}clusters_registered[1h]))`),
};

/** Returns the PrometheusRule: `deploy/kubernetes/monitoring/rules.yaml`. */
export function prometheusRules(): string {
  const rules = Object.entries(ALARM_GUIDES).flatMap(([section, { severity, impact, run }]) => {
    const { expr, minutes, clusters, summary = ALARMS[section]?.description } = RULES[section] ?? {};
    if (expr === undefined) return [];
    const named = clusters && { clusters: `{{ range query \`${clusters}\` }}{{ .Labels.cluster }} {{ end }}` };
    const annotations = { summary, impact, first: run, runbook: `docs/runbook.md#${section}`, ...named };
    return { alert: section, expr, for: `${minutes}m`, labels: { severity }, annotations };
  });
  return `# Made by "npm run docs" from deploy/prometheus-rules.ts.\n${stringify({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: NAME, labels: { 'app.kubernetes.io/name': NAME } },
    spec: { groups: [{ name: NAME, rules }] },
  })}`;
}

const PANELS: readonly (readonly [title: string, expr: string, legend: string])[] = [
  [
    'Firing alarms',
    `count by (alertname) (ALERTS{alertstate="firing", alertname=~"${Object.keys(RULES).join('|')}"}) or on() label_replace(vector(0), "alertname", "none", "", "")`,
    '{{alertname}}',
  ],
  [
    'Unhealthy clusters',
    `{__name__=~"${P}clusters_(overdue|failing|without_live_lease|with_findings|with_two_owners)"}`,
    '{{__name__}}',
  ],
  ['Clusters by health', `sum by (health) (max by (cluster, health) (${P}cluster_health))`, '{{health}}'],
  ['Ticks per minute', `sum by (loop, outcome) (rate(${P}ticks_total[5m])) * 60`, '{{loop}} {{outcome}}'],
  ['Passes per minute', `sum by (loop) (rate(${P}passes_total[5m])) * 60`, '{{loop}}'],
  ['Failed passes per minute', `sum by (loop) (rate(${P}failures_total[5m])) * 60`, '{{loop}}'],
  [
    'Duration of a pass, p99',
    // Without a pass, the quantile is NaN, which `>= 0` removes.
    `histogram_quantile(0.99, sum by (loop, le) (rate(${P}pass_duration_seconds_bucket[5m]))) >= 0`,
    '{{loop}}',
  ],
  [
    'Fullest ranges',
    `topk(10, max by (cluster, range) (${P}range_used / (${P}range_capacity > 0)))`,
    '{{cluster}} {{range}}',
  ],
  [
    'Findings',
    `sum by (type) (max by (cluster, type) (${P}findings)) or on() label_replace(0 * max(${P}cluster_series), "type", "none", "", "")`,
    '{{type}}',
  ],
  ['Table reachable', `${P}table_reachable`, '{{pod}}'],
];

/** Returns the Grafana dashboard: `deploy/kubernetes/monitoring/dashboard.json`. */
export function grafanaDashboard(): string {
  const datasource = { type: 'prometheus', uid: '${datasource}' };
  const panels = PANELS.map(([title, expr, legendFormat], at) => ({
    id: at + 1,
    type: 'timeseries',
    title,
    datasource,
    gridPos: { x: (at % 2) * 12, y: Math.floor(at / 2) * 8, w: 12, h: 8 },
    fieldConfig: { defaults: { min: 0, noValue: 'no data' }, overrides: [] },
    targets: [{ refId: 'A', expr, legendFormat, datasource }],
  }));
  const list = [{ name: 'datasource', type: 'datasource', query: 'prometheus' }];
  const time = { from: 'now-6h', to: 'now' };
  return `${JSON.stringify({ uid: NAME, title: NAME, schemaVersion: 39, refresh: '1m', time, templating: { list }, panels })}\n`;
}

/** Returns the table of docs/runbook.md. Links to the invocation of `doctor`, and omits the comments in commands. */
export function guideTable(): string[] {
  return [
    '| alarm | fires at | severity and impact | first command | without Lambda |',
    '| --- | --- | --- | --- | --- |',
    ...Object.entries(ALARM_GUIDES).map(([section, { severity, impact, stack, run }]) => {
      const first = stack === DOCTOR ? '[invoke `doctor`](#nothing-ran)' : commandOf(stack);
      const other = run === stack ? 'same' : run === '' ? '–' : commandOf(run);
      return `| [${section}](#${section}) | ${conditionsOf(section)} | ${severity}: ${impact} | ${first} | ${other} |`;
    }),
  ];
}

function commandOf(text: string): string {
  return `\`${text.replace(/ +#.*/, '')}\``;
}
