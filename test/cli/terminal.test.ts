import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import { type Format, Output } from '../../cli/output.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { anyText } from '../support/properties.ts';

const REPOSITORY = join(import.meta.dirname, '../..');

/** Texts that would control a terminal. */
const HOSTILE = [
  'red \u001b[31mfor ever',
  'clipboard \u001b]52;c;cm0gLXJmIC8=\u0007',
  'C1 \u009b2J',
  'forged\nerror: all is lost',
  'overwritten\rdone',
  'separated\u2028line',
  'turned \u202etxt.exe',
  'isolated \u2066x\u2069',
  'no width \u200b\u2060\ufeff',
  'tags \u{e0041}',
  'half \ud800',
];

/** An output to a terminal with colors. */
function anOutput(format: Format = 'table') {
  const written = { out: '', err: '' };
  const streamOf = (to: 'out' | 'err') =>
    Object.assign(
      new Writable({
        decodeStrings: false,
        write(chunk: string, _encoding, done) {
          written[to] += chunk;
          done();
        },
      }),
      { isTTY: true, getColorDepth: () => 8 },
    );
  const terminal = { in: process.stdin, out: streamOf('out'), err: streamOf('err') } as Terminal;
  return { output: new Output(format, terminal), written };
}

const ESC = '\u001b';
const OWN_STYLES = new RegExp(`${ESC}\\[(?:1|22|31|39)m`, 'g');
const UNSAFE = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

describe('a text from a cluster does not control the terminal', () => {
  test.each(HOSTILE)('a terminal shows %j and does nothing else', (hostile) => {
    const { output, written } = anOutput();
    output.lines([hostile, output.paint('red', hostile), `${output.paint('bold', 'own')} ${hostile}`]);
    output.say(hostile);
    for (const text of [written.out, written.err]) expect(text.replaceAll(OWN_STYLES, '')).not.toMatch(UNSAFE);
    expect(written.out.match(/\n/g)).toHaveLength(3);
    expect(written.err.match(/\n/g)).toHaveLength(1);
  });

  test('a line keeps the styles of kbctl, and none from a text of the cluster', () => {
    const { output, written } = anOutput();
    output.lines([`${output.paint('red', 'own')} \u001b[31mforeign`]);
    expect(written.out).toBe('\u001b[31mown\u001b[39m \\u001b[31mforeign\n');
  });

  test('a text from a cluster is always printed as one line', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const { output, written } = anOutput();
        output.lines([output.paint('bold', text), text]);
        expect(written.out.replaceAll(OWN_STYLES, '').slice(0, -1)).not.toMatch(UNSAFE);
        expect(written.out.split('\n')).toHaveLength(3);
      }),
    );
  });
});

describe('a document for programs', () => {
  test.each(['json', 'yaml'] as const)('a document with %s is safe for a terminal, and keeps its meaning', (format) => {
    const { output, written } = anOutput(format);
    const items = HOSTILE.map((text) => text.toWellFormed());
    const keyed = { 'key \u202e': 'a: "\u001b"', time: '2026-01-02T03:04:05Z', lines: 'two\nlines' };
    output.document({ kind: 'Thing', items, keyed });
    expect(written.out).not.toMatch(UNSAFE);
    const read: unknown = format === 'json' ? JSON.parse(written.out) : parse(written.out);
    expect(read).toEqual({ apiVersion: 'kbctl/v1', kind: 'Thing', items, keyed });
  });
});

test('only one file writes to a terminal', () => {
  const writers = ['cli', 'local'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(folder, file))
      .filter((file) =>
        /\b(stream|out|err|stdout|stderr)\.write\(|console\./.test(readFileSync(join(REPOSITORY, file), 'utf8')),
      ),
  );
  // main.ts writes nothing: it waits until the stream is empty.
  expect(writers.sort()).toEqual(['cli/main.ts', 'cli/terminal.ts']);
});
