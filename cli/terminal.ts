import { randomUUID } from 'node:crypto';
import { clearScreenDown, cursorTo } from 'node:readline';
import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { Document, visit } from 'yaml';
import { EXIT } from './errors.ts';

/** Data goes to `out`, everything else to `err`. */
export interface Terminal {
  readonly in: AsyncIterable<Uint8Array>;
  readonly out: OutStream;
  readonly err: OutStream;
}

export type OutStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export type Style = Parameters<typeof styleText>[0];

/** Replaces ESC in kbctl's styles until a line is written. It is random, so that no other text contains it. */
const OWN_ESCAPE = `<${randomUUID()}>`;

export function styled(stream: OutStream, style: Style, text: string): string {
  const colored = styleText(style, escapeControlCharacters(text), { stream, validateStream: true });
  return colored.replaceAll('\u001b', OWN_ESCAPE);
}

/** Escapes characters that control a terminal. Only needed to measure a text: {@link writeLines} escapes every line. */
export function escapeControlCharacters(text: string): string {
  return escaped(text, CONTROLS);
}

/** Writes lines to a terminal or a log. Escapes characters that break a line or control the terminal, except kbctl's styles. */
export function writeLines(stream: OutStream, lines: readonly string[]): void {
  stream.write(lines.map((line) => `${escapeLine(line)}\n`).join(''));
}

/** Clears a terminal before a table is printed again. In a file, an empty line separates the tables. */
export function startAgain(stream: OutStream): void {
  if (stream.isTTY !== true) stream.write('\n');
  else if (cursorTo(stream, 0, 0)) clearScreenDown(stream);
}

/** Writes data. Escapes control characters except line breaks and tabs, in a form that JSON and {@link yamlOf} allow. */
export function writeData(stream: OutStream, data: string | Uint8Array): void {
  stream.write(typeof data === 'string' ? escaped(data, CONTROLS_IN_DATA) : data);
}

/** Returns YAML that has the same values in YAML 1.1 and 1.2. For example, it quotes `0o17`, and (as kubectl does) times. */
export function yamlOf(value: unknown): string {
  const document = new Document(value, { version: '1.1' });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value !== 'string') return;
      if (CONTROLS.test(node.value) || NUMBER_OF_YAML_1_2.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString();
}

/** Control characters, format characters (directions, zero widths, tags), and line separators. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Matches texts such as `0o17`. YAML 1.1 reads some of them as text, but YAML 1.2, kubectl and `kbctl` read a number. */
const NUMBER_OF_YAML_1_2 = /^[-+]?0[box]/i;
const CONTROLS_IN_DATA = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/u;

function escapeLine(line: string): string {
  return escapeControlCharacters(line).replaceAll(OWN_ESCAPE, '\u001b');
}

function escaped(text: string, controls: RegExp): string {
  const unitOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const all = new RegExp(controls, 'gu');
  return text.toWellFormed().replace(all, (character) => character.split('').map(unitOf).join(''));
}

let unfinished = 0;

/** Ends the process when the reader closes the output, or a write fails, unless {@link completeAlways} runs a task. */
export function endWhenUnread(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    const isClosed = error.code === 'EPIPE';
    if (!isClosed && process.exitCode === undefined) {
      process.exitCode = EXIT.configuration;
      const fault = `error: The output cannot be written (${error.code}): write it to a place with free space.`;
      if (stream !== process.stderr) writeLines(process.stderr, [fault]);
    }
    if (unfinished === 0) process.exit(isClosed ? EXIT.fine : EXIT.configuration);
  });
}

export async function completeAlways<Result>(work: () => Promise<Result>): Promise<Result> {
  unfinished++;
  try {
    return await work();
  } finally {
    unfinished--;
  }
}
