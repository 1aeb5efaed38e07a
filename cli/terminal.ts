import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import ora from 'ora';
import { Document, visit } from 'yaml';
import { EXIT } from './errors.ts';

/** Where a command reads and writes: data on `out`, everything else on `err`. */
export interface Terminal {
  readonly in: InStream;
  readonly out: OutStream;
  readonly err: OutStream;
}

/** A stream as `process.stdin` is one. */
export type InStream = NodeJS.ReadableStream & AsyncIterable<Uint8Array> & { readonly isTTY?: boolean };

/** A stream as `process.stdout` is one. */
export type OutStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export type Style = Parameters<typeof styleText>[0];

/**
 * Stands for the ESC of our own colours until a line is written. It is random, so that no text from elsewhere contains it.
 */
const OWN_ESCAPE = `<${randomUUID()}>`;

/** Returns the text in that style, without any where the stream is no terminal or `NO_COLOR` is set. */
export function styled(stream: OutStream, style: Style, text: string): string {
  const colored = styleText(style, escapeControls(text), { stream, validateStream: true });
  return colored.replaceAll('\u001b', OWN_ESCAPE);
}

/**
 * Returns the text with every control and format character as `\u001b`: in a terminal they move the cursor, write the
 * clipboard, forge lines or turn words around. {@link writeLines} does it for every line; before that only what
 * measures a text has to.
 */
export function escapeControls(text: string): string {
  return escaped(text, CONTROLS);
}

/** Writes lines for people. What is in them can do no more than be read: each stays one line, and only our styles color. */
export function writeLines(stream: OutStream, lines: readonly string[]): void {
  stream.write(lines.map((line) => `${shown(line)}\n`).join(''));
}

/** Writes a question; the answer follows on its line. */
export function writePrompt(stream: OutStream, question: string): void {
  stream.write(`${shown(question)} `);
}

/**
 * Writes what programs read, which keeps its line breaks and tabs. In JSON, and in the strings of {@link yamlOf}, the
 * escaped characters mean what they were.
 */
export function writeData(stream: OutStream, data: string | Uint8Array): void {
  stream.write(typeof data === 'string' ? escaped(data, CONTROLS_IN_DATA) : data);
}

export function clearScreen(stream: OutStream): void {
  stream.write('\u001b[H\u001b[J');
}

/** As YAML that a reader of YAML 1.1 understands: times and the like are quoted, as kubectl does it. */
export function yamlOf(value: unknown): string {
  const document = new Document(value, { version: '1.1' });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && CONTROLS.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString();
}

/** Controls, format characters (directions, zero widths, tags), and what else ends a line. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const CONTROLS_IN_DATA = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/u;

function shown(line: string): string {
  return escapeControls(line).replaceAll(OWN_ESCAPE, '\u001b');
}

function escaped(text: string, controls: RegExp): string {
  return text
    .toWellFormed()
    .replace(new RegExp(controls, 'gu'), (character) =>
      Array.from({ length: character.length }, (_, index) => unitOf(character.charCodeAt(index))).join(''),
    );
}

function unitOf(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}

/** How many parts of this process must come to their end, whoever reads what it says. */
let unfinished = 0;

/** Who reads the output may have seen enough: the process ends then, unless it is in the middle of writing. */
export function endWhenUnread(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (unfinished === 0) process.exit(EXIT.fine);
  });
}

/** Does all of the work, also where nobody reads what it says any more. */
export async function whateverIsRead<Result>(work: () => Promise<Result>): Promise<Result> {
  unfinished++;
  try {
    return await work();
  } finally {
    unfinished--;
  }
}

/** Says how far long work is, on a terminal alone. */
export interface Progress {
  update(text: string): void;
  /** Takes the line away: what came of it is said by others. */
  end(): void;
}

export function startProgress(stream: OutStream, text: string): Progress {
  // A terminal that does not tell its width (`docker exec -t`, `script`) says 0, which the spinner would divide by.
  const isShown = stream.isTTY === true && stream.columns !== 0;
  const spinner = ora({
    text: escapeControls(text),
    stream,
    isEnabled: isShown,
    isSilent: !isShown,
    discardStdin: false,
  });
  spinner.start();
  return {
    update: (next) => {
      spinner.text = escapeControls(next);
    },
    end: () => {
      spinner.stop();
    },
  };
}
