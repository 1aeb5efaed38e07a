import type { Loop } from '../cluster/cluster-spec.ts';
import type { CounterName, Labels, SampleName } from './metrics.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error';

/** A list is for people: each entry is one sentence. */
export type FieldValue = string | number | boolean | readonly string[] | Readonly<Record<string, number>> | undefined;
export type Fields = Readonly<Record<string, FieldValue>>;

/** Where one invocation tells what it does. Never throws, never waits. */
export interface Telemetry {
  /** `message` is constant; what varies is in `fields`. An error goes in as `describeError` has it, never as itself. */
  log(level: Level, message: string, fields?: Fields): void;
  /**
   * Adds to a counter. Adding 0 makes the counter known to alarms. The cluster, if it is named, becomes a dimension only
   * where that is asked for.
   */
  count(counter: CounterName, by: number, labels?: Labels): void;
  /** One pass had this value. */
  sample(name: SampleName, value: number, cluster: string): void;
  /** Writes the invocation's metrics, once. */
  flush(): void;
}

/** What an invocation's every line and metric carries. */
export interface InvocationLabels {
  readonly loop: Loop | 'deregister' | 'doctor' | 'allocate' | 'admission';
  /** Lambda's own id of the invocation. */
  readonly requestId?: string;
}

export type TelemetryFactory = (invocation: InvocationLabels) => Telemetry;
