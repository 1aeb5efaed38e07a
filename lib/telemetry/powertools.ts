import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { Counter, CounterName, Labels } from './metrics.ts';
import { METRIC_NAMESPACE } from './metrics.ts';
import type { Fields, InvocationLabels, Level, Telemetry } from './telemetry.ts';

/** Structured log lines and, once per invocation, metrics in CloudWatch's embedded format. */
export function powertoolsTelemetry({ loop, requestId }: InvocationLabels): Telemetry {
  const logger = new Logger({
    serviceName: METRIC_NAMESPACE,
    persistentKeys: requestId === undefined ? { loop } : { loop, requestId },
  });
  const counters = new Map<string, Counter & { value: number }>();
  const durations: number[] = [];

  return {
    log: (level: Level, message: string, fields: Fields = {}) => {
      logger[level](message, { ...fields });
    },
    count: (name: CounterName, by: number, labels: Labels = {}) => {
      const key = JSON.stringify([name, labels]);
      const counter = counters.get(key) ?? { name, labels, value: 0 };
      counter.value += by;
      counters.set(key, counter);
    },
    duration: (ms: number) => {
      durations.push(ms);
    },
    flush: () => {
      const metrics = new Metrics({
        namespace: METRIC_NAMESPACE,
        serviceName: METRIC_NAMESPACE,
        defaultDimensions: { loop },
      });
      const groups = Map.groupBy(counters.values(), ({ labels }) => JSON.stringify(labels));
      for (const ms of durations) metrics.addMetric('durationMs', MetricUnit.Milliseconds, ms);
      // Durations go into the same line as the counters without labels, which therefore come first.
      for (const labels of new Set(['{}', ...groups.keys()])) {
        metrics.addDimensions(JSON.parse(labels));
        for (const { name, value } of groups.get(labels) ?? []) metrics.addMetric(name, MetricUnit.Count, value);
        if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
      }
      counters.clear();
      durations.length = 0;
    },
  };
}
