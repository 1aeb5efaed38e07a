import type { InvocationLabels, Level, LogFields, SampleName, Telemetry } from '../../lib/telemetry/telemetry.ts';

export type RecordingTelemetry = ReturnType<typeof recordingTelemetry>;

export function recordingTelemetry() {
  /** The counters by `name` or `name{label=value}`. */
  const counters: Record<string, number> = {};
  const lines: { readonly level: Level; readonly message: string; readonly fields: LogFields }[] = [];
  const samples: { readonly name: SampleName; readonly value: number }[] = [];
  const flushes = { count: 0 };
  const invocations: InvocationLabels[] = [];
  const telemetry: Telemetry = {
    log: (level, message, fields = {}) => void lines.push({ level, message, fields }),
    count: (name, by, labels = {}) => {
      const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
      const key = pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
      counters[key] = (counters[key] ?? 0) + by;
    },
    sample: (name, value) => void samples.push({ name, value }),
    flush: () => {
      flushes.count += 1;
    },
  };
  return { ...telemetry, lines, counters, samples, flushes, invocations };
}
