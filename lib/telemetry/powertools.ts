import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import { boundedText } from '../cluster/values.ts';
import {
  type CounterName,
  type FieldValue,
  type InvocationLabels,
  type Labels,
  type Level,
  type LogFields,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
  type SampleName,
  type Telemetry,
} from './telemetry.ts';

interface Line {
  readonly labels: Labels;
  readonly samples: Map<SampleName, number[]>;
  readonly counters: Map<CounterName, number>;
}

/** Returns telemetry that writes log lines and, once per invocation, metrics in CloudWatch's embedded format. */
export function powertoolsTelemetry({ loop, requestId }: InvocationLabels): Telemetry {
  // Each stack of an account has its own service name. Otherwise alarms would count the metrics of several stacks.
  const serviceName = process.env['POWERTOOLS_SERVICE_NAME'] ?? METRIC_NAMESPACE;
  const logger = new Logger({ serviceName, persistentKeys: { loop, ...(requestId && { requestId }) } });
  const lines = new Map<string, Line>();

  const lineOf = (labels: Labels): Line => {
    const key = JSON.stringify(labels);
    const line = lines.get(key) ?? { labels, samples: new Map(), counters: new Map() };
    lines.set(key, line);
    return line;
  };

  return {
    log: (level: Level, message: string, fields: LogFields = {}) => {
      logger[level](message, boundedFields(fields));
    },
    count: (name, by, labels = {}) => {
      const { counters } = lineOf(labels);
      counters.set(name, (counters.get(name) ?? 0) + by);
    },
    sample: (name, value) => {
      const { samples } = lineOf({});
      samples.set(name, [...(samples.get(name) ?? []), value]);
    },
    flush: () => {
      const metrics = new Metrics({ namespace: METRIC_NAMESPACE, serviceName, defaultDimensions: { loop } });
      // Powertools writes a metric early and without labels if it has more than 100 values, so the line without labels
      // must be first.
      for (const line of [...lines.values()].sort(byLabels)) write(metrics, line);
      lines.clear();
    },
  };
}

function byLabels(one: Line, other: Line): number {
  return Object.keys(one.labels).length - Object.keys(other.labels).length;
}

function write(metrics: Metrics, { labels, samples, counters }: Line): void {
  metrics.addDimensions({ ...labels });
  for (const [name, values] of samples) {
    for (const value of values) metrics.addMetric(name, SAMPLE_UNITS[name], value);
  }
  for (const [name, value] of counters) metrics.addMetric(name, MetricUnit.Count, value);
  if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
}

const LONGEST_TEXT = 1_000;
/**
 * A tenth of CloudWatch's limit for one log event. CloudWatch cuts a longer event, and the remaining text is then not valid JSON.
 */
const LONGEST_LINE = 24_000;

/** Bounds each text of one log line and their sum, because they may come from tenants. */
function boundedFields(fields: LogFields): Record<string, FieldValue> {
  let left = LONGEST_LINE;
  const bounded = (text: string): string => {
    const cut = boundedText(text, Math.min(LONGEST_TEXT, left));
    left = Math.max(0, left - cut.length);
    return cut;
  };
  const ofList = (list: readonly string[]): string[] => {
    const shown: string[] = [];
    for (const text of list) {
      if (left === 0) return [...shown, `and ${list.length - shown.length} more`];
      shown.push(bounded(text));
    }
    return shown;
  };
  const value = (field: FieldValue): FieldValue => {
    if (typeof field === 'string') return bounded(field);
    return isList(field) ? ofList(field) : field;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, value(field)]));
}

function isList(field: FieldValue): field is readonly string[] {
  return Array.isArray(field);
}
