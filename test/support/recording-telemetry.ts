import type { InvocationLabels, Level, LogFields, SampleName, Telemetry } from '../../lib/telemetry/telemetry.ts';

export interface RecordedLine {
  readonly level: Level;
  readonly message: string;
  readonly fields: LogFields;
}

export interface RecordingTelemetry extends Telemetry {
  readonly lines: RecordedLine[];
  /** The counters by `name` or `name{label=value}`. */
  readonly counters: Record<string, number>;
  readonly samples: { readonly name: SampleName; readonly value: number }[];
  readonly flushes: { count: number };
  readonly invocations: InvocationLabels[];
}

export function recordingTelemetry(): RecordingTelemetry {
  const counters: Record<string, number> = {};
  const lines: RecordedLine[] = [];
  const samples: RecordingTelemetry['samples'] = [];
  const flushes = { count: 0 };
  return {
    lines,
    counters,
    samples,
    flushes,
    invocations: [],
    log: (level, message, fields = {}) => {
      lines.push({ level, message, fields });
    },
    count: (name, by, labels = {}) => {
      const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
      const key = pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
      counters[key] = (counters[key] ?? 0) + by;
    },
    sample: (name, value) => {
      samples.push({ name, value });
    },
    flush: () => {
      flushes.count += 1;
    },
  };
}
