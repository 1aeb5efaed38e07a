import { isDeepStrictEqual, type styleText } from 'node:util';
import {
  type FieldValue,
  type Level,
  type LogFields,
  logOnly,
  type TelemetryFactory,
} from '../lib/telemetry/telemetry.ts';

// Logs for people: no metrics, ids or figures.

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string;

export interface SentenceOptions {
  readonly nowMs: () => number;
  /** Writes `line` and a line break. `line` contains no line break. */
  readonly write: (line: string) => void;
  readonly paint: Paint;
  /** The cluster whose name is omitted from the lines. */
  readonly own: string;
}

interface Sentence {
  readonly text: string;
  /** True if the sentence is about a problem whose end is reported too. */
  readonly isTrouble?: boolean;
  readonly style?: Parameters<Paint>[0];
}

/** The width of the column of loops, which is enough for the longest id. */
const LOOP_WIDTH = 18;

/** The text before each entry of a log field, and the style of the line. For any other field, the text is the field's name. */
const SENTENCES: Readonly<Record<string, Sentence>> = {
  changes: { text: '' },
  wouldWrite: { text: 'would ', style: 'cyan' },
  findings: { text: 'found ', style: 'yellow', isTrouble: true },
  fullest: { text: 'a range fills up: ', style: 'yellow', isTrouble: true },
  errors: { text: 'failed: ', style: 'red' },
  eventErrors: { text: 'could not write an event: ', style: 'yellow', isTrouble: true },
};

export function logLine(nowMs: number, source: string, text: string): string {
  const time = new Date(nowMs).toISOString().slice(11, 19);
  return `${time}  ${source.padEnd(LOOP_WIDTH)}  ${text}`;
}

/** Logs a sentence for each change, finding and failure. If the last pass had the same sentences, logs short lines or nothing. */
export function sentenceTelemetry({ nowMs, own, write, paint }: SentenceOptions): TelemetryFactory {
  /** The sentences that were printed last, by loop and by prefix. The prefix is the name of another cluster, or empty. */
  const reported = new Map<string, Map<string, readonly Sentence[]>>();
  return ({ loop }) => {
    const lastOf = reported.get(loop) ?? new Map<string, readonly Sentence[]>();
    reported.set(loop, lastOf);
    let hasReported = false;
    const print = ({ text, style }: Sentence, prefix = '') => {
      const line = prefix + text;
      write(logLine(nowMs(), loop, style === undefined ? line : paint(style, line)));
    };
    const report = (level: Level, sentences: readonly Sentence[], prefix: string) => {
      if (!isDeepStrictEqual(lastOf.get(prefix), sentences)) for (const sentence of sentences) print(sentence, prefix);
      // Level `info` is not printed again: a pass in mode observe would report the same writes each time.
      else if (level !== 'info') for (const text of repeated(sentences)) print({ text, style: 'dim' }, prefix);
      lastOf.set(prefix, sentences);
      hasReported = true;
    };
    const reportEnd = ({ passes, failed }: LogFields) => {
      if (hasReported || passes === 0 || failed !== 0) return;
      if ([...lastOf.values()].flat().some(({ isTrouble }) => isTrouble)) print({ text: 'resolved', style: 'green' });
      lastOf.clear();
    };
    return logOnly((level, message, fields = {}) => {
      const sentences = sentencesOf(level, message, fields);
      const { cluster } = fields;
      const isOther = typeof cluster === 'string' && cluster !== own;
      if (sentences.length > 0) report(level, sentences, isOther ? `${cluster}: ` : '');
      else if (message === 'invocation ended') reportEnd(fields);
    });
  };
}

/** Returns short lines for repeated messages. A repeated error is shown as still failing. */
function repeated(sentences: readonly Sentence[]): string[] {
  const codes = sentences.flatMap(({ text }) => /^failed: ([^:]*)/.exec(text)?.[1] ?? []);
  return codes.length > 0 ? [...new Set(codes)].map((code) => `still failing: ${code}`) : ['unchanged'];
}

export function warningTelemetry(write: (line: string) => void): TelemetryFactory {
  return ({ loop }) =>
    logOnly((level, message, { cluster, errors, ...fields } = {}) => {
      if (level !== 'warn' && level !== 'error') return;
      const source = typeof cluster === 'string' ? `${cluster} ${loop}` : loop;
      const sentences = [...listIn(errors), ...Object.values(fields).flatMap(listIn)];
      for (const text of sentences.length > 0 ? sentences : [message]) write(`${source}: ${text}`);
    });
}

function sentencesOf(level: Level, message: string, fields: LogFields): Sentence[] {
  // An entry of `fullest` begins with the name of its cluster, which is cut off.
  const fullest = listIn(fields['fullest']).map((entry) => entry.slice(entry.lastIndexOf(': ') + 2));
  const trouble = level === 'error' && { isTrouble: true };
  const entries = Object.entries({ ...fields, fullest, findings: findingsBesideErrors(fields) });
  const sentences = entries.flatMap(([name, value]) => {
    const { text, ...style } = SENTENCES[name] ?? { text: `${name}: ` };
    return listIn(value).map((entry) => ({ text: text + entry, ...style, ...trouble }));
  });
  if (sentences.length > 0 || level === 'info') return sentences;
  return [{ text: message, style: trouble ? 'red' : 'yellow', ...trouble }];
}

/** Returns the findings, except the finding that made the pass fail and is logged as the error. */
function findingsBesideErrors({ findings, errors }: LogFields): readonly string[] {
  const failures = listIn(errors);
  return listIn(findings).filter((finding) => {
    const message = finding.slice(finding.indexOf(': '));
    return !failures.some((failure) => failure.endsWith(message));
  });
}

function listIn(value: FieldValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}
