import type { Writable } from 'node:stream';
import { stripVTControlCharacters, styleText } from 'node:util';

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

/** The text in that style, plain where the stream is no terminal or `NO_COLOR` is set. */
export function styled(stream: OutStream, style: Style, text: string): string {
  return styleText(style, text, { stream, validateStream: true });
}

/**
 * Text from a cluster or a file for a terminal: control characters would move its cursor, and those of writing
 * direction would turn words around.
 */
export function plain(text: string): string {
  return stripVTControlCharacters(text.toWellFormed()).replace(
    /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
