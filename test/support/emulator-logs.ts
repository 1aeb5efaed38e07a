/** What a function's lines say: log lines of JSON, and metrics in CloudWatch's embedded format. */
export interface ReadLines {
  readonly logs: readonly LogLine[];
  readonly metrics: readonly Metric[];
}

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
  readonly unit: string;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

/**
 * Reads every line. @throws Error for one that is neither, or whose metrics CloudWatch would not take
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
 */
export function readLines(lines: readonly string[]): ReadLines {
  const logs: LogLine[] = [];
  const metrics: Metric[] = [];
  for (const line of lines) {
    const fields = objectIn(line);
    if ('_aws' in fields) metrics.push(...metricsIn(fields, line));
    else logs.push(logLine(fields, line));
  }
  return { logs, metrics };
}

/** The sum of a metric's values where its dimensions are (at least) those; `undefined` when there is no value. */
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
  readonly Metrics: readonly { readonly Name: string; readonly Unit?: string }[];
}

const MOST_DIMENSIONS = 30;
const MOST_METRICS = 100;
const MOST_VALUES = 100;

function objectIn(line: string): Fields {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // told below
  }
  throw new Error(`a line that is no JSON object: ${line}`);
}

function logLine(fields: Fields, line: string): LogLine {
  const { level, message, timestamp, service } = fields;
  if ([level, message, timestamp, service].every((value) => typeof value === 'string')) return fields as LogLine;
  throw new Error(`a log line without level, message, timestamp or service: ${line}`);
}

function metricsIn(fields: Fields, line: string): Metric[] {
  const invalid = (why: string) => new Error(`${why}: ${line}`);
  const { Timestamp: timestamp, CloudWatchMetrics: directives } = fields['_aws'] as {
    readonly Timestamp: unknown;
    readonly CloudWatchMetrics: readonly Directive[];
  };
  if (typeof timestamp !== 'number') throw invalid('metrics without a timestamp');
  return directives.flatMap(({ Namespace, Dimensions, Metrics }) => {
    if (Metrics.length > MOST_METRICS) throw invalid('more metrics than CloudWatch takes');
    return Dimensions.flatMap((names) => {
      if (names.length > MOST_DIMENSIONS) throw invalid('more dimensions than CloudWatch takes');
      const dimensions = Object.fromEntries(names.map((name) => [name, dimensionOf(fields, name, invalid)]));
      return Metrics.map(({ Name, Unit = 'None' }) => ({
        namespace: Namespace,
        name: Name,
        unit: Unit,
        dimensions,
        values: valuesOf(fields, Name, invalid),
      }));
    });
  });
}

function dimensionOf(fields: Fields, name: string, invalid: (why: string) => Error): string {
  const value = fields[name];
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(`dimension ${name} has no value`);
}

function valuesOf(fields: Fields, name: string, invalid: (why: string) => Error): number[] {
  const value = fields[name];
  const values: unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > MOST_VALUES) throw invalid(`metric ${name} has more values than CloudWatch takes`);
  return values.map((one) => {
    if (typeof one === 'number' && Number.isFinite(one)) return one;
    throw invalid(`metric ${name} has no number`);
  });
}
