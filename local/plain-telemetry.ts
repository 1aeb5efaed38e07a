import type { Fields, FieldValue, Level, Telemetry, TelemetryFactory } from '../lib/telemetry/telemetry.ts';
import { noColors, type Paint } from './run-hooks.ts';

export interface PlainOptions {
  readonly nowMs: () => number;
  /** The cluster that nobody has to be told the name of. Default: all. */
  readonly own?: string;
  /** Takes one line without its line break. */
  readonly write: (line: string) => void;
  /** Default: without colors. */
  readonly paint?: Paint;
}

/** What a loop told last. */
interface Told {
  readonly sentences: string;
  /** Something was wrong, and not only warned of. */
  readonly trouble: boolean;
}

interface Sentence {
  readonly text: string;
  /** That it is over is worth a line. */
  readonly isTrouble?: boolean;
  readonly style?: Parameters<Paint>[0];
}

/** Wide enough for the longest id of a loop. */
const LOOP_WIDTH = 18;

/** Lists that are not told as `name: entry`. */
const SENTENCES: Readonly<Record<string, (entry: string) => Sentence>> = {
  changes: (entry) => ({ text: entry }),
  wouldWrite: (entry) => ({ text: `would ${entry}`, style: 'cyan' }),
  findings: (entry) => ({ text: `found ${entry}`, style: 'yellow', isTrouble: true }),
  // The name of the cluster is said before it, where it has to be.
  fullest: (entry) => ({
    text: `a range fills up: ${entry.slice(entry.lastIndexOf(': ') + 2)}`,
    style: 'yellow',
    isTrouble: true,
  }),
  errors: (entry) => ({ text: `failed: ${entry}`, style: 'red' }),
  eventErrors: (entry) => ({ text: `could not write an event: ${entry}`, style: 'yellow', isTrouble: true }),
};

/** A time of day, who says it, and what. */
export function plainLine(nowMs: number, who: string, text: string): string {
  return `${new Date(nowMs).toISOString().slice(11, 19)}  ${who.padEnd(LOOP_WIDTH)}  ${text}`;
}

/**
 * One line for each thing that a loop did, found or failed, and none of figures and ids: for one cluster, whose passes
 * somebody watches, and others beside it, which are named. What is told again in the same words is left out, trouble cut short, and that it is over is said.
 */
export function plainTelemetry({ nowMs, own, write, paint = noColors }: PlainOptions): TelemetryFactory {
  /** By loop, and by the name of the cluster where it is another. */
  const lastTold = new Map<string, Map<string, Told>>();
  return ({ loop }): Telemetry => {
    const toldOf = lastTold.get(loop) ?? new Map<string, Told>();
    lastTold.set(loop, toldOf);
    let hasTold = false;
    const say = ({ text, style }: Sentence) => {
      write(plainLine(nowMs(), loop, style === undefined ? text : paint(style, text)));
    };
    const tell = (level: Level, told: readonly Sentence[], other: string) => {
      const sentences = told.map(({ text }) => text).join('\n');
      const sayOf = ({ text, ...sentence }: Sentence) => say({ ...sentence, text: `${other}${text}` });
      const isSame = toldOf.get(other)?.sentences === sentences;
      if (!isSame) told.forEach(sayOf);
      // An observing pass finds the same to write each time: only trouble that lasts is worth a line.
      else if (level !== 'info') sayOf({ text: 'as before', style: 'dim' });
      toldOf.set(other, { sentences, trouble: level === 'error' || told.some(({ isTrouble = false }) => isTrouble) });
      hasTold = true;
    };
    const tellEnd = ({ passes, failed }: Fields) => {
      if (hasTold || passes === 0 || failed !== 0) return;
      if ([...toldOf.values()].some(({ trouble }) => trouble)) say({ text: 'all is well again', style: 'green' });
      toldOf.clear();
    };
    return {
      log: (level: Level, message: string, fields: Fields = {}) => {
        const told = sentencesOf(level, message, fields);
        const { cluster } = fields;
        const isOther = own !== undefined && typeof cluster === 'string' && cluster !== own;
        if (told.length > 0) tell(level, told, isOther ? `${cluster}: ` : '');
        else if (message === 'invocation ended') tellEnd(fields);
      },
      count: () => {},
      sample: () => {},
      flush: () => {},
    };
  };
}

function sentencesOf(level: Level, message: string, fields: Fields): Sentence[] {
  if (level === 'debug') return [];
  const entries = Object.entries({ ...fields, findings: findingsBesideErrors(fields) });
  const sentences = entries.flatMap(([name, value]) => listIn(value).map((entry) => sentenceOf(name, entry)));
  if (sentences.length > 0 || level === 'info') return sentences;
  return [{ text: message, style: level === 'error' ? 'red' : 'yellow' }];
}

function sentenceOf(name: string, entry: string): Sentence {
  return SENTENCES[name]?.(entry) ?? { text: `${name}: ${entry}` };
}

/** What a pass found and failed by is told once. */
function findingsBesideErrors({ findings, errors }: Fields): readonly string[] {
  const failures = listIn(errors);
  return listIn(findings).filter((finding) => {
    const message = finding.slice(finding.indexOf(': '));
    return !failures.some((failure) => failure.endsWith(message));
  });
}

function listIn(value: FieldValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}
