import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { InvalidArgumentError } from 'commander';
import { parse } from 'yaml';
import { ownerFrom, parseHoldFor } from '../../cli/allocate/request.ts';
import { type Format, Output, plainOf } from '../../cli/output.ts';
import { holdEnd } from '../../cli/status/columns.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { type Column, textTable } from '../../cli/text-table.ts';
import { HOLD_OWNER } from '../../lib/range/hold.ts';
import { NOW_MS } from '../support/a-fleet-status.ts';
import { filesInRepository, REPOSITORY, readInRepository } from '../support/repository.ts';

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

function anOutput(format: Format = 'table') {
  const written = { out: '', err: '' };
  const streamOf = (to: 'out' | 'err') => {
    const write = (chunk: string, _encoding: string, done: () => void) => {
      written[to] += chunk;
      done();
    };
    return Object.assign(new Writable({ decodeStrings: false, write }), { isTTY: true, getColorDepth: () => 8 });
  };
  const terminal = { in: process.stdin, out: streamOf('out'), err: streamOf('err') } as Terminal;
  return { output: new Output(format, terminal), written };
}

const ESC = '\u001b';
const OWN_STYLES = new RegExp(`${ESC}\\[(?:1|22|31|39)m`, 'g');
const UNSAFE = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

describe('text from a cluster cannot control the terminal', () => {
  test.each(HOSTILE)('a terminal shows %j and does nothing else', (hostile) => {
    const { output, written } = anOutput();
    output.lines([hostile, output.paint('red', hostile), `${output.paint('bold', 'own')} ${hostile}`]);
    output.say(hostile);
    for (const text of [written.out, written.err]) expect(text.replaceAll(OWN_STYLES, '')).not.toMatch(UNSAFE);
    expect(written.out.match(/\n/g)).toHaveLength(3);
    expect(written.err.match(/\n/g)).toHaveLength(1);
  });

  test('a line keeps the terminal styles that kbctl sets, and escapes the terminal styles in a text from a cluster', () => {
    const { output, written } = anOutput();
    output.lines([`${output.paint('red', 'own')} \u001b[31mforeign`]);
    expect(written.out).toBe('\u001b[31mown\u001b[39m \\u001b[31mforeign\n');
  });
});

test.each(['json', 'yaml'] as const)('a document in %s has no control characters and is parsed unchanged', (format) => {
  const { output, written } = anOutput(format);
  const items = HOSTILE.map((text) => text.toWellFormed());
  const texts = { time: '2026-01-02T03:04:05Z', lines: 'two\nlines', octal: '0o17' };
  const keyed = { 'key \u202e': 'a: "\u001b"', ...texts };
  output.document({ kind: 'Thing', items, keyed });
  expect(written.out).not.toMatch(UNSAFE);
  const read: unknown = format === 'json' ? JSON.parse(written.out) : parse(written.out);
  expect(read).toEqual({ apiVersion: 'kbctl/v1', kind: 'Thing', items, keyed });
});

test('if the disk for the output of a command is full, the command fails without a stack trace', () => {
  const stdio = ['ignore', openSync('/dev/full', 'w'), 'pipe'] as const;
  const { status, stderr } = spawnSync(process.execPath, [join(REPOSITORY, 'cli/kbctl.mjs'), 'explain'], {
    stdio: [...stdio],
    encoding: 'utf8',
  });
  expect(stderr).toBe('error: The output cannot be written (ENOSPC): write it to a place with free space.\n');
  expect(status).toBe(3);
});

test('only cli/terminal.ts writes to a terminal', () => {
  const files = filesInRepository('cli', 'local').filter((file) => file.endsWith('.ts'));
  const writes = /\b(stream|out|err|stdout|stderr)\.write\(|console\./;
  const writers = files.filter((file) => writes.test(readInRepository(file)));
  // cli/main.ts writes only an empty string, to wait until all output is written.
  expect(writers.sort()).toEqual(['cli/main.ts', 'cli/terminal.ts']);
});

const AT = '2026-11-21T06:15:39.000Z';

test('JSON and YAML output contains ISO times and durations in milliseconds, and omits the map of a range', () => {
  const lastPass = { startedAtMs: NOW_MS, durationMs: 12.5, error: undefined };
  const ranges = [{ map: 'drawn', holds: [{ owner: 'ci', untilMs: NOW_MS }] }];
  expect(plainOf({ atMs: NOW_MS, withdrawnUntilMs: NOW_MS, lastPass, ranges, owner: null })).toStrictEqual({
    at: AT,
    withdrawnUntil: AT,
    lastPass: { startedAt: AT, durationMs: 12.5 },
    ranges: [{ holds: [{ owner: 'ci', until: AT }] }],
    owner: null,
  });
});

test('JSON and YAML output does not change the names of counts, and prints a time in milliseconds if it is too late for a date', () => {
  const counts = { atMs: 1 };
  expect(plainOf({ counts, untilMs: 1e20 })).toEqual({ counts, until: '100000000000000000000' });
});

test.each([
  ['in 59m 59.7s', 'in 60m', 3_599_700],
  ['in 59m 55s', 'in 60m', 3_595_000],
  ['in 4m 59.7s', 'in 5m', 299_700],
  ['now', '0s ago', 0],
  ['5 seconds ago', '5s ago', -5_000],
])('if the end of a hold is %s, it is shown as "%s"', (_, text, leftMs) => {
  const hold = { owner: 'ci', takenUpBy: 'any' } as const;
  expect(holdEnd({ ...hold, untilMs: NOW_MS + leftMs }, NOW_MS)).toBe(text);
  expect(holdEnd(hold, NOW_MS)).toBe('never');
});

test.each([
  ['alice', 'alice'],
  ['DOMAIN\\alice smith', 'DOMAIN-alice-smith'],
  ['_svc_', 'svc'],
  [`${'a'.repeat(62)}.b`, 'a'.repeat(62)],
  ['日本', 'kbctl'],
  ['', 'kbctl'],
])('a hold of the user %j has the owner %s', (name, owner) => {
  expect(ownerFrom(name)).toBe(owner);
  expect(owner).toMatch(HOLD_OWNER);
});

test('parseHoldFor accepts a duration or forever, and refuses other text', () => {
  expect(parseHoldFor('forever')).toBe('forever');
  expect(parseHoldFor(' 1h30m ')).toBe(5_400_000);
  expect(() => parseHoldFor('soon')).toThrow(/or "forever"/);
  expect(() => parseHoldFor('soon')).toThrow(InvalidArgumentError);
});

const COLUMNS: readonly Column<Readonly<Record<'name' | 'size' | 'about', string>>>[] = [
  { title: 'NAME', text: ({ name }) => name },
  { title: 'SIZE', text: ({ size }) => size, yields: true },
  { title: 'AGE', text: () => '5s', yields: true },
  { title: 'ABOUT', text: ({ about }) => about, shrinks: true },
];
const ROWS = [{ name: '茶', size: '10', about: 'a text that is longer than its column' }];

test.each([
  {
    columns: undefined,
    title: 'NAME   SIZE   AGE   ABOUT',
    row: '茶     10     5s    a text that is longer than its column',
  },
  { columns: 40, title: 'NAME   SIZE   AGE   ABOUT', row: '茶     10     5s    a text that is long…' },
  { columns: 30, title: 'NAME   AGE   ABOUT', row: '茶     5s    a text that is l…' },
  { columns: 20, title: 'NAME   ABOUT', row: '茶     a text that …' },
  { columns: 10, title: 'NAME   ABOUT', row: '茶     a text that…' },
])('a table for a width of $columns first cuts texts, and then omits columns', ({ columns, title, row }) => {
  expect(textTable(COLUMNS, ROWS, columns, (_, text) => text)).toEqual([title, row]);
});
