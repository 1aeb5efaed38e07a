import type { InvocationLabels, Level, LogFields, SampleName, Telemetry } from '../../lib/telemetry/telemetry.ts';

export function recordingTelemetry() {
  /** The counters by `name` or `name{type=value}`. */
  const counters: Record<string, number> = {};
  const lines: { readonly level: Level; readonly message: string; readonly fields: LogFields }[] = [];
  const samples: { readonly name: SampleName; readonly value: number }[] = [];
  const flushes = { count: 0 };
  const invocations: InvocationLabels[] = [];
  const telemetry: Telemetry = {
    log: (level, message, fields = {}) => void lines.push({ level, message, fields }),
    count: (name, by, type) => {
      const key = type === undefined ? name : `${name}{type=${type}}`;
      counters[key] = (counters[key] ?? 0) + by;
    },
    sample: (name, value) => void samples.push({ name, value }),
    flush: () => {
      flushes.count += 1;
    },
  };
  /** Returns the level and the fields of each line with this message. */
  const logged = (message: string): LogFields[] =>
    lines.flatMap((line) => (line.message === message ? [{ level: line.level, ...line.fields }] : []));
  return { ...telemetry, lines, logged, counters, samples, flushes, invocations };
}
