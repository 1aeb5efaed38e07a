import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import { boundedText, defined } from '../util/values.ts';
import {
  type CounterName,
  type FieldValue,
  type InvocationLabels,
  type LogFields,
  METRIC_NAMESPACE,
  SAMPLE_UNITS,
  type SampleName,
  type Telemetry,
} from './telemetry.ts';

/** Returns telemetry that writes log lines and, once per invocation, metrics in CloudWatch's embedded format. */
export function powertoolsTelemetry({ loop, requestId }: InvocationLabels): Telemetry {
  // Each stack of an account has its own service name. Otherwise alarms would count the metrics of several stacks.
  const serviceName = process.env['POWERTOOLS_SERVICE_NAME'] ?? METRIC_NAMESPACE;
  const logger = new Logger({ serviceName, persistentKeys: { loop, ...defined({ requestId }) } });
  const samples: (readonly [SampleName, number])[] = [];
  /** The counters of each type. The counters without a type are first, and are written together with the samples. */
  const counters = new Map<string | undefined, Map<CounterName, number>>([[undefined, new Map()]]);

  return {
    log: (level, message, fields = {}) => logger[level](message, boundedFields(fields)),
    count: (name, by, type) => {
      const ofType = counters.get(type) ?? new Map<CounterName, number>();
      counters.set(type, ofType.set(name, (ofType.get(name) ?? 0) + by));
    },
    sample: (name, value) => void samples.push([name, value]),
    flush: () => {
      const metrics = new Metrics({ namespace: METRIC_NAMESPACE, serviceName, defaultDimensions: { loop } });
      for (const [name, value] of samples) metrics.addMetric(name, SAMPLE_UNITS[name], value);
      for (const [type, ofType] of counters) {
        if (type !== undefined) metrics.addDimensions({ type });
        for (const [name, value] of ofType) metrics.addMetric(name, MetricUnit.Count, value);
        if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
      }
      samples.length = 0;
      counters.clear();
    },
  };
}

const LONGEST_TEXT = 1_000;
/** Less than a tenth of CloudWatch's limit for a log event. An event above that limit is cut, and is then not valid JSON. */
const LONGEST_LINE = 24_000;

/** Bounds each text of a log line, and the sum of all texts, because texts may come from tenants. */
function boundedFields(fields: LogFields): Record<string, FieldValue> {
  let left = LONGEST_LINE;
  const bounded = (text: string): string => {
    const cut = boundedText(text, Math.min(LONGEST_TEXT, left));
    left = Math.max(0, left - cut.length);
    return cut;
  };
  const value = (field: FieldValue): FieldValue => {
    if (typeof field === 'string') return bounded(field);
    if (!isList(field)) return field;
    const shown: string[] = [];
    for (const text of field) {
      if (left === 0) return [...shown, `and ${field.length - shown.length} more`];
      shown.push(bounded(text));
    }
    return shown;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, value(field)]));
}

function isList(field: FieldValue): field is readonly string[] {
  return Array.isArray(field);
}
