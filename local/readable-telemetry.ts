import type { Fields, FieldValue, InvocationLabels, Level, Telemetry } from '../lib/telemetry/telemetry.ts';
import { noColors, type Paint } from './run-hooks.ts';

export interface ReadableOptions extends InvocationLabels {
  readonly nowMs: () => number;
  /** Takes one line without its line break. */
  readonly write: (line: string) => void;
  /** Default: without colors. */
  readonly paint?: Paint;
  /** Also what is only of interest when something is wrong: the line of each invocation, and `debug`. */
  readonly verbose?: boolean;
}

const STYLES = { debug: 'dim', info: undefined, warn: 'yellow', error: 'red' } as const satisfies Record<
  Level,
  Parameters<Paint>[0] | undefined
>;

/** Log lines for people: time, cluster, loop, message, key=value; each entry of a list on a line of its own. No metrics. */
export function readableTelemetry(options: ReadableOptions): Telemetry {
  const { loop, nowMs, write, paint = noColors, verbose = false } = options;
  return {
    log: (level: Level, message: string, { cluster, passId, ...told }: Fields = {}) => {
      if (!verbose && (level === 'debug' || isRoutine(level, cluster))) return;
      const time = new Date(nowMs()).toISOString().slice(11, 19);
      const fields = Object.entries(verbose ? { passId, ...told } : told);
      const words = fields.flatMap(([key, value]) => word(key, value));
      write([time, text(cluster ?? '-'), loop, styled(level, message, paint), ...words].join(' '));
      for (const entry of fields.flatMap(([key, value]) => entriesOf(key, value))) write(styled(level, entry, paint));
    },
    count: () => {},
    sample: () => {},
    flush: () => {},
  };
}

function styled(level: Level, plain: string, paint: Paint): string {
  const style = STYLES[level];
  return style === undefined ? plain : paint(style, plain);
}

/** The line of an invocation in which nothing was wrong: its passes have told what they did. */
function isRoutine(level: Level, cluster: FieldValue): boolean {
  return level === 'info' && cluster === undefined;
}

function isList(value: FieldValue): value is readonly string[] {
  return Array.isArray(value);
}

function entriesOf(key: string, value: FieldValue): string[] {
  return isList(value) ? value.map((entry) => `         ${key}: ${entry}`) : [];
}

function word(key: string, value: FieldValue): string[] {
  if (value === undefined || isList(value)) return [];
  if (typeof value === 'object') return Object.entries(value).flatMap(([name, count]) => word(name, count));
  return [`${key}=${text(value)}`];
}

function text(value: FieldValue): string {
  const plain = String(value);
  return /[\s"=]/.test(plain) ? JSON.stringify(plain) : plain;
}
