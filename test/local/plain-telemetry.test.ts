import { describe, expect, test } from '@jest/globals';
import type { Fields, Level } from '../../lib/telemetry/telemetry.ts';
import { plainTelemetry } from '../../local/plain-telemetry.ts';

type Line = readonly [Level, string, Fields?];

const END: Line = ['info', 'invocation ended', { passes: 1, failed: 0 }];
const failed = (...errors: string[]): Line => ['error', 'pass failed', { cluster: 'demo', passId: 'p', errors }];

/** What is written for invocations of one loop, each of these lines. */
function written(...invocations: readonly (readonly Line[])[]): string[] {
  const lines: string[] = [];
  const factory = plainTelemetry({
    nowMs: () => Date.parse('2026-01-02T03:04:05.678Z'),
    write: (line) => {
      lines.push(line);
    },
  });
  for (const invocation of invocations) {
    const telemetry = factory({ loop: 'system-namespaces' });
    for (const line of invocation) telemetry.log(...line);
  }
  return lines.map((line) => line.replace(/^03:04:05 {2}system-namespaces {3}/, ''));
}

describe('plain telemetry', () => {
  test('has a line for each thing that was done, with time and loop, and none of figures and ids', () => {
    const fields = {
      cluster: 'demo',
      passId: 'p',
      durationMs: 3,
      counts: { namespaces: 4 },
      changes: ['created a', 'created b'],
    };
    expect(written([['info', 'pass succeeded', fields], END])).toEqual(['created a', 'created b']);
  });

  test.each<[string, Fields, string]>([
    ['what would be written', { wouldWrite: ['create Namespace a'] }, 'would create Namespace a'],
    ['how full a range is', { fullest: ['demo: 93.5 per cent'] }, 'a range fills up: 93.5 per cent'],
    ['what was found', { findings: ['leak: 10.0.0.7 has no Service'] }, 'found leak: 10.0.0.7 has no Service'],
    ['what failed', { errors: ['Forbidden: no rights'] }, 'failed: Forbidden: no rights'],
    ['an event that was not written', { eventErrors: ['Forbidden: no'] }, 'could not write an event: Forbidden: no'],
    ['any other list by its name', { paused: ['demo until noon'] }, 'paused: demo until noon'],
  ])('tells %s', (_, fields, line) => {
    expect(written([['warn', 'pass succeeded', fields]])).toEqual([line]);
  });

  test('tells a warning that has no more to it', () => {
    expect(written([['warn', 'the certificate is not verified', { cluster: 'demo' }]])).toEqual([
      'the certificate is not verified',
    ]);
  });

  test('names each cluster but its own, and compares each with itself', () => {
    const lines: string[] = [];
    const factory = plainTelemetry({ nowMs: () => 0, own: 'demo', write: (line) => lines.push(line.slice(30)) });
    const change = { changes: ['created a'] };
    for (let tick = 0; tick < 2; tick++) {
      const { log } = factory({ loop: 'system-namespaces' });
      for (const cluster of ['demo', 'other']) log('info', 'pass succeeded', { cluster, ...change });
    }
    expect(lines).toEqual(['created a', 'other: created a']);
  });

  test('tells once what was found and is why the pass failed', () => {
    const findings = ['noLiveLease: nobody answers', 'oddProbe: teapot'];
    expect(written([['error', 'pass failed', { findings, errors: ['NoLiveLease: nobody answers'] }]])).toEqual([
      'found oddProbe: teapot',
      'failed: NoLiveLease: nobody answers',
    ]);
  });

  test('cuts short what it told the last time, and says when that is over', () => {
    expect(written([failed('A: b')], [failed('A: b')], [failed('A: c')], [END], [END])).toEqual([
      'failed: A: b',
      'as before',
      'failed: A: c',
      'all is well again',
    ]);
  });

  test('is silent about what an observing pass would write once more', () => {
    const observed: Line = ['info', 'pass succeeded', { wouldWrite: ['create Endpoints default/kubernetes'] }];
    expect(written([observed], [observed], [observed])).toEqual(['would create Endpoints default/kubernetes']);
  });

  test('does not say that all is well again after a mere warning', () => {
    expect(written([['warn', 'the certificate is not verified', { cluster: 'demo' }]], [END])).toEqual([
      'the certificate is not verified',
    ]);
  });

  test('says that all is well again after a finding', () => {
    expect(written([['warn', 'pass succeeded', { findings: ['leak: x'] }]], [END])).toEqual([
      'found leak: x',
      'all is well again',
    ]);
  });

  test('says nothing of an invocation in which no pass was due', () => {
    const skipped: Line = ['info', 'invocation ended', { passes: 0, failed: 0 }];
    expect(written([failed('A: b')], [skipped], [failed('A: b')])).toEqual(['failed: A: b', 'as before']);
  });

  test('says nothing of a pass that had nothing to say', () => {
    expect(written([END], [['debug', 'details', { changes: ['x'] }]])).toEqual([]);
  });
});
