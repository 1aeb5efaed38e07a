import { describe, expect, test } from '@jest/globals';
import type { Fields, Level } from '../../lib/telemetry/telemetry.ts';
import { readableTelemetry } from '../../local/readable-telemetry.ts';

function linesOf(level: Level, message: string, fields: Fields, verbose = false): string[] {
  const lines: string[] = [];
  const telemetry = readableTelemetry({
    loop: 'system-namespaces',
    nowMs: () => Date.parse('2026-01-02T03:04:05.678Z'),
    write: (line) => {
      lines.push(line);
    },
    verbose,
  });
  telemetry.log(level, message, fields);
  return lines;
}

describe('readable telemetry', () => {
  test('a line tells time, cluster, loop, message and figures', () => {
    expect(
      linesOf('info', 'pass succeeded', { cluster: 'demo', durationMs: 12, counts: { created: 4 }, none: undefined }),
    ).toEqual(['03:04:05 demo system-namespaces pass succeeded durationMs=12 created=4']);
  });

  test('the id of a pass is of interest only to those who want everything', () => {
    const fields = { cluster: 'demo', passId: 'p-1' };
    expect(linesOf('info', 'pass succeeded', fields)).toEqual(['03:04:05 demo system-namespaces pass succeeded']);
    expect(linesOf('info', 'pass succeeded', fields, true)).toEqual([
      '03:04:05 demo system-namespaces pass succeeded passId=p-1',
    ]);
  });

  test('each change is a line of its own', () => {
    expect(
      linesOf('info', 'pass succeeded', { cluster: 'demo', changes: ['created namespace a', 'created b'] }),
    ).toEqual([
      '03:04:05 demo system-namespaces pass succeeded',
      '         changes: created namespace a',
      '         changes: created b',
    ]);
  });

  test('a value of several words is quoted', () => {
    expect(linesOf('info', 'told', { cluster: 'demo', reason: 'an upgrade' })).toEqual([
      '03:04:05 demo system-namespaces told reason="an upgrade"',
    ]);
  });

  test.each<{ level: Level; verbose: boolean; lines: number }>([
    { level: 'info', verbose: false, lines: 0 },
    { level: 'info', verbose: true, lines: 1 },
    { level: 'warn', verbose: false, lines: 1 },
  ])('the line of a whole invocation at $level, verbose $verbose, is $lines lines', ({ level, verbose, lines }) => {
    expect(linesOf(level, 'invocation ended', { passes: 1 }, verbose)).toHaveLength(lines);
  });

  test('a stream that is no terminal gets no colours', () => {
    expect(linesOf('error', 'pass failed', { cluster: 'demo' })).toEqual([
      '03:04:05 demo system-namespaces pass failed',
    ]);
  });
});
