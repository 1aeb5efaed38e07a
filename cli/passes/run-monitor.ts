import { createServer, type IncomingMessage } from 'node:http';
import { Counter, Gauge, Histogram, type OpenMetricsContentType, Registry } from 'prom-client';
import { LOOPS, type Loop, SCHEDULE_SECONDS, STACK_LOOP } from '../../lib/spec/cluster-spec.ts';
import type { CounterName, InvocationLabels, Telemetry, TelemetryFactory } from '../../lib/telemetry/telemetry.ts';
import { defined } from '../../lib/util/values.ts';
import { answering, type LocalReply } from '../../local/local-server.ts';
import { type ListenAddress, listening } from '../listen.ts';
import { addClusterMetrics, newRegistry, PREFIX } from '../page/fleet-metrics.ts';
import { sharedRead } from '../page/serve-page.ts';
import type { FleetStatus } from '../status/cluster-status.ts';

/**
 * The maximum age of the figures that this process shows while another process counts the clusters. Younger figures are shown,
 * because the other process may not have any yet.
 */
const FIGURES_LAST_MS = 120_000;
/** Counters that exist from the start, because Prometheus sees no increase in the first value of a counter. */
const FROM_ZERO: readonly CounterName[] = ['passes', 'failures', 'lateTicks', 'lateProbes', 'clockSkewed'];
const FIGURE = /^(clusters[A-Z]|fullestRangeOfFleet)/;

export type RunMonitor = ReturnType<typeof runMonitor>;

/** Creates the state of a `kbctl run --table`, for its metrics and probes. @param steadyMs a clock that is never corrected */
export function runMonitor(telemetry: TelemetryFactory, nowMs: () => number, steadyMs: () => number) {
  const registry = newRegistry();
  const counters = passCounters(registry);
  const { ticks, invokedAt } = tickMetrics(registry);
  const startedAtMs = steadyMs();
  const triedAtMs = new Map<Loop, number>();
  let ready = false;
  let figures: { readonly values: ReadonlyMap<string, number>; readonly atMs: number } | undefined;
  let isElsewhere = false;
  let shown: FleetStatus | undefined;

  return {
    telemetry: (labels: InvocationLabels): Telemetry => {
      const found = new Map<string, number>();
      const inner = telemetry(labels);
      return {
        ...counted(inner, labels.loop, counters, found),
        flush: () => {
          if (found.has('clustersJudged')) figures = { values: found, atMs: nowMs() };
          inner.flush();
        },
      };
    },
    /** Records that this process tries to claim a tick. */
    tried: (loop: Loop): void => void triedAtMs.set(loop, steadyMs()),
    /** `failed`: the claim ended with an error, for example of the table, so it is unknown whether a process runs the tick. */
    claimed: (loop: Loop, outcome: 'won' | 'lost' | 'failed'): void => {
      ready = outcome !== 'failed';
      ticks.inc({ loop, outcome });
      if (outcome === 'won') invokedAt.set({ loop }, nowMs() / 1000);
      if (loop === STACK_LOOP && outcome !== 'failed') isElsewhere = outcome === 'lost';
    },
    /** Replaces the series of each cluster. The value `undefined` removes all series: there are too many clusters. */
    show: (status: FleetStatus | undefined) => {
      shown = status;
    },
    /** Returns the loops whose ticks this process did not try to claim for two intervals. Lost and failed claims count as tries. */
    stuckLoops: () =>
      LOOPS.filter((loop) => steadyMs() - (triedAtMs.get(loop) ?? startedAtMs) > 2 * SCHEDULE_SECONDS[loop] * 1000),
    /** Returns whether the last claim reached the table. */
    isReady: () => ready,
    metrics: async () => {
      const current = newRegistry();
      const gauge = (name: string, help: string, value: number) =>
        new Gauge({ name: `${PREFIX}${name}`, help, registers: [current] }).set(value);
      gauge('table_reachable', '1 if the last claim of a tick reached the table.', Number(ready));
      gauge('cluster_series', '1 while there are series of each cluster.', Number(shown !== undefined));
      if (figures !== undefined && !(isElsewhere && nowMs() - figures.atMs > FIGURES_LAST_MS)) {
        const help = 'When this process last counted the figures of all clusters.';
        gauge('figures_timestamp_seconds', help, figures.atMs / 1000);
        for (const [name, value] of figures.values) gauge(snakeCase(name), `${name} of all clusters.`, value);
      }
      if (shown !== undefined) {
        gauge('cluster_series_timestamp_seconds', 'When the series of each cluster were read.', shown.atMs / 1000);
        addClusterMetrics(current, shown);
      }
      // The types of `merge` know only the older format.
      const all = Registry.merge([registry, current] as unknown as Registry[]);
      return { contentType: all.contentType, text: await all.metrics() };
    },
  };
}

/** Returns telemetry that also counts in Prometheus' metrics. Figures of the fleet are added to `figures`, not to counters. */
function counted(
  inner: Telemetry,
  loop: string,
  { count, duration }: ReturnType<typeof passCounters>,
  figures: Map<string, number>,
): Omit<Telemetry, 'flush'> {
  return {
    log: inner.log,
    count: (name, by, type) => {
      inner.count(name, by, type);
      if (FIGURE.test(name)) figures.set(name, (figures.get(name) ?? 0) + by);
      else count(name, loop, by, type);
    },
    sample: (name, value) => {
      inner.sample(name, value);
      if (name === 'durationMs') duration.observe({ loop }, value / 1000);
    },
  };
}

function passCounters(registry: Registry<OpenMetricsContentType>) {
  const duration = new Histogram({
    name: `${PREFIX}pass_duration_seconds`,
    help: 'How long passes took.',
    labelNames: ['loop'],
    buckets: [0.1, 0.3, 1, 3, 10, 30],
    registers: [registry],
  });
  const count = (counter: CounterName, loop: string, by: number, type?: string) => {
    const name = nameOf(counter);
    const metric =
      (registry.getSingleMetric(name) as Counter | undefined) ??
      new Counter({ name, help: `${counter} of passes.`, labelNames: ['loop', 'type'], registers: [registry] });
    metric.inc({ loop, ...defined({ type }) }, by);
  };
  for (const loop of LOOPS) for (const counter of FROM_ZERO) count(counter, loop, 0);
  return { count, duration };
}

/** Returns a counter's name. Keeps upstream's names, and renames `findings`, because a gauge has this name. */
function nameOf(counter: CounterName): string {
  if (counter.startsWith('apiserver_')) return counter;
  return `${PREFIX}${counter === 'findings' ? 'other_findings' : snakeCase(counter)}_total`;
}

function tickMetrics(registry: Registry<OpenMetricsContentType>) {
  const of = (name: string, help: string, labelNames: readonly string[]) => ({
    name: `${PREFIX}${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  const ticks = new Counter(of('ticks_total', 'Ticks that this process tried to claim.', ['loop', 'outcome']));
  const invokedAt = new Gauge(of('loop_invoked_timestamp_seconds', 'When this process last ran a tick.', ['loop']));
  for (const loop of LOOPS) {
    for (const outcome of ['won', 'lost', 'failed']) ticks.inc({ loop, outcome }, 0);
    invokedAt.set({ loop }, 0);
  }
  return { ticks, invokedAt };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Answers scrapes and probes. The answers have no secrets, so requests need no key. */
export async function answerMonitorRequest(
  { method, url }: Pick<IncomingMessage, 'method' | 'url'>,
  { stuckLoops, isReady, metrics }: Pick<RunMonitor, 'stuckLoops' | 'isReady' | 'metrics'>,
): Promise<LocalReply> {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'Use GET.');
  switch (url?.split('?', 1)[0] ?? '') {
    case '/metrics': {
      const { contentType, text } = await metrics();
      return { status: 200, headers: { 'content-type': contentType }, body: text };
    }
    case '/healthz': {
      const stuck = stuckLoops();
      if (stuck.length === 0) return plain(200, 'ok');
      return plain(503, `No claim of a tick was tried for two intervals: ${stuck.join(', ')}.`);
    }
    case '/readyz':
      if (isReady()) return plain(200, 'ok');
      return plain(503, 'The table does not answer: see the log.');
    default:
      return plain(404, 'Not found: use /metrics, /healthz or /readyz.');
  }
}

function plain(status: number, text: string): LocalReply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: `${text}\n` };
}

const MOST_CONNECTIONS = 64;

/** @throws CliError if it cannot listen at the address */
export async function serveMonitor(monitor: RunMonitor, address: ListenAddress, nowMs: () => number) {
  const ended = new AbortController();
  const metrics = sharedRead(() => monitor.metrics(), nowMs, ended.signal);
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000 },
    answering((request) => answerMonitorRequest(request, { ...monitor, metrics })),
  );
  server.maxConnections = MOST_CONNECTIONS;
  return { close: await listening(server, address, 'Metrics', ended) };
}
