export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly timestamp: string;
  readonly service: string;
  readonly [field: string]: unknown;
}

/** The values of one metric in one line. */
export interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

/** Reads log lines of JSON, and metrics in CloudWatch's embedded format. @throws Error for a line that is neither. */
export function readLines(lines: readonly string[]) {
  const logs: LogLine[] = [];
  const metrics: Metric[] = [];
  for (const line of lines) {
    const fields: Fields = JSON.parse(line);
    if ('_aws' in fields) metrics.push(...metricsIn(fields, line));
    else logs.push(logLine(fields, line));
  }
  return { logs, metrics };
}

/** Returns the sum of a metric's values that have these dimensions, or `undefined` if there is no value. */
export function sumOf(
  metrics: readonly Metric[],
  name: string,
  dimensions: Readonly<Record<string, string>> = {},
): number | undefined {
  const values = metrics
    .filter((metric) => metric.name === name)
    .filter((metric) => Object.entries(dimensions).every(([key, value]) => metric.dimensions[key] === value))
    .flatMap((metric) => metric.values);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}

type Fields = Readonly<Record<string, unknown>>;

interface Directive {
  readonly Namespace: string;
  readonly Dimensions: readonly (readonly string[])[];
  readonly Metrics: readonly { readonly Name: string }[];
}

function logLine(fields: Fields, line: string): LogLine {
  const { level, message, timestamp, service } = fields;
  if ([level, message, timestamp, service].every((value) => typeof value === 'string')) return fields as LogLine;
  throw new Error(`The log line has no level, message, timestamp or service: ${line}`);
}

function metricsIn(fields: Fields, line: string): Metric[] {
  const { CloudWatchMetrics: directives } = fields['_aws'] as { readonly CloudWatchMetrics: readonly Directive[] };
  return directives.flatMap(({ Namespace, Dimensions, Metrics }) =>
    Dimensions.flatMap((names) => {
      const dimensions = Object.fromEntries(names.map((name) => [name, String(fields[name] ?? '')]));
      return Metrics.map(({ Name }) => {
        const values = [fields[Name]].flat();
        if (Object.values(dimensions).includes('') || !values.every((value) => typeof value === 'number')) {
          throw new Error(`The metric ${Name} has no number, or a dimension without a value: ${line}`);
        }
        return { namespace: Namespace, name: Name, dimensions, values };
      });
    }),
  );
}
