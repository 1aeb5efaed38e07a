import { expect, test } from '@jest/globals';
import type { Level, LogFields } from '../../lib/telemetry/telemetry.ts';
import { sentenceTelemetry, warningTelemetry } from '../../local/human-telemetry.ts';

const paint = (_style: unknown, text: string) => text;

type Line = readonly [Level, string, LogFields?];

const END: Line = ['info', 'invocation ended', { passes: 1, failed: 0 }];
const failed = (...errors: string[]): Line => ['error', 'pass failed', { cluster: 'demo', passId: 'p', errors }];

const warned = (fields: LogFields): Line => ['warn', 'pass succeeded', fields];
const observed: Line = ['info', 'pass succeeded', { wouldWrite: ['create Endpoints default/kubernetes'] }];

/** Returns what invocations of one loop print, given the log lines of each. */
function written(...invocations: readonly (readonly Line[])[]): string[] {
  const lines: string[] = [];
  const factory = sentenceTelemetry({
    nowMs: () => Date.parse('2026-01-02T03:04:05.678Z'),
    own: 'demo',
    write: (line) => void lines.push(line),
    paint,
  });
  for (const invocation of invocations) {
    const telemetry = factory({ loop: 'system-namespaces' });
    for (const line of invocation) telemetry.log(...line);
  }
  return lines.map((line) => line.replace(/^03:04:05 {2}system-namespaces {3}/, ''));
}

test.each<[string, LogFields, string]>([
  ['a write that mode observe does not make', { wouldWrite: ['create Namespace a'] }, 'would create Namespace a'],
  ['how full a range is', { fullest: ['demo: 93.5 per cent'] }, 'a range fills up: 93.5 per cent'],
  ['a finding', { findings: ['leak: 10.0.0.7 has no Service'] }, 'found leak: 10.0.0.7 has no Service'],
  ['an error', { errors: ['Forbidden: no rights'] }, 'failed: Forbidden: no rights'],
  ['an event that was not written', { eventErrors: ['Forbidden: no'] }, 'could not write an event: Forbidden: no'],
  ['any other list, with its name', { paused: ['demo until noon'] }, 'paused: demo until noon'],
])('log lines report %s', (_, fields, line) => {
  expect(written([warned(fields)])).toEqual([line]);
});

const SUCCESS = { passId: 'p', durationMs: 3, counts: { namespaces: 4 }, changes: ['created a', 'created b'] };
const changeOf = (cluster: string): Line => ['info', 'pass succeeded', { cluster, changes: ['created a'] }];
const BOTH = [changeOf('demo'), changeOf('other')];
test.each<[string, (readonly Line[])[], string[]]>([
  ['contain each change, without figures and ids', [[['info', 'pass succeeded', SUCCESS], END]], SUCCESS.changes],
  [
    'begin with the name of the cluster, except for the cluster of the run, and do not repeat a change',
    [BOTH, BOTH],
    ['created a', 'other: created a'],
  ],
  [
    'report a finding that made the pass fail only once, as the error',
    [
      [
        [
          'error',
          'pass failed',
          { findings: ['noLiveLease: no answer', 'odd: x'], errors: ['NoLiveLease: no answer'] },
        ],
      ],
    ],
    ['found odd: x', 'failed: NoLiveLease: no answer'],
  ],
  [
    'are short for a repeated problem, and report its end',
    [[failed('A: b')], [failed('A: b')], [failed('A: c')], [END], [END]],
    ['failed: A: b', 'still failing: A', 'failed: A: c', 'resolved'],
  ],
  [
    'report the end of any error, but not of errors in a warning',
    [[['error', 'process lost', { clusters: ['demo'] }]], [END], [warned({ errors: ['A: b'] })], [END]],
    ['clusters: demo', 'resolved', 'failed: A: b'],
  ],
  [
    'contain "unchanged" for a finding that lasts, and report its end',
    [[warned({ findings: ['leak: x'] })], [warned({ findings: ['leak: x'] })], [END]],
    ['found leak: x', 'unchanged', 'resolved'],
  ],
  ['do not repeat a write of mode observe', Array(3).fill([observed]), ['would create Endpoints default/kubernetes']],
  [
    'report a warning without fields, but not its end',
    [[['warn', 'the certificate is not verified', { cluster: 'demo' }]], [END]],
    ['the certificate is not verified'],
  ],
  [
    'report nothing about an invocation in which no pass was due',
    [[failed('A: b')], [['info', 'invocation ended', { passes: 0, failed: 0 }]], [failed('A: b')]],
    ['failed: A: b', 'still failing: A'],
  ],
  ['report nothing about a pass without changes', [[END]], []],
])('log lines %s', (_, invocations, lines) => {
  expect(written(...invocations)).toEqual(lines);
});

test('a command that runs a pass prints each warning of the pass as one line', () => {
  const lines: string[] = [];
  const { log } = warningTelemetry((line) => lines.push(line))({ loop: 'kubernetes-service' });
  log('info', 'pass ended', { cluster: 'a', changes: ['created it'] });
  log('warn', 'verification is off', { cluster: 'a' });
  log('error', 'pass failed', { cluster: 'a', errors: ['Unavailable: gone', 'Forbidden: no'] });
  log('error', 'nothing ran');
  expect(lines).toEqual([
    'a kubernetes-service: verification is off',
    'a kubernetes-service: Unavailable: gone',
    'a kubernetes-service: Forbidden: no',
    'kubernetes-service: nothing ran',
  ]);
});
