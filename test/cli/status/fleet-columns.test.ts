import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Output } from '../../../cli/output.ts';
import type { ClusterStatus, LoopStatus } from '../../../cli/status/cluster-status.ts';
import { ago, fleetColumns, loopColumns, RANGE_COLUMNS } from '../../../cli/status/columns.ts';
import { statusLines } from '../../../cli/status/status-lines.ts';
import type { Loop } from '../../../lib/spec/cluster-spec.ts';
import { formatAge, formatDuration } from '../../../lib/util/age.ts';
import { aClusterStatus, aFinding, aSlash24, loopsOf, NOW_MS } from '../../support/a-fleet-status.ts';
import { found } from '../../support/found.ts';

const cell = (name: string, status: Partial<ClusterStatus>) =>
  fleetColumns(NOW_MS)
    .find(({ title }) => title === name)
    ?.text(aClusterStatus(status));

const output = new Output('table', { in: new PassThrough(), out: new PassThrough(), err: new PassThrough() });

const problem = { level: 'warning', message: 'm', next: 'n' } as const;
const attention = ['leak', 'duplicate', 'leak', 'leak'].map((word) => ({ ...problem, word }));

test('the line of a cluster shows each type of problem once, with the number of problems of that type', () => {
  expect(cell('ATTENTION', { attention })).toBe('leak (3),duplicate');
  expect(cell('ATTENTION', { attention: [] })).toBe('');
});

test('the problems in the line of a paused cluster begin with "paused" unless the health of the cluster is "paused"', () => {
  const paused = { untilMs: NOW_MS + 60_000, reason: 'an upgrade', by: 'me', all: false };
  expect(cell('ATTENTION', { health: 'unhealthy', attention, paused })).toBe('paused,leak (3),duplicate');
  expect(cell('ATTENTION', { health: 'paused', attention: [], paused })).toBe('');
});

test('if a cluster has had no pass, its line and the rows of its loops show when the first passes are due', () => {
  const loops = loopsOf().map((loop, at) => ({ ...loop, firstPassAtMs: NOW_MS + (at + 1) * 30_000 }));
  expect(cell('ATTENTION', { health: 'unknown', attention: [], loops })).toBe('first passes in 2m');
  const [, , lastPass] = loopColumns(NOW_MS);
  expect(loops.map((loop) => lastPass?.text(loop))).toEqual(
    ['30s', '60s', '90s', '2m'].map((at) => `first pass in ${at}`),
  );
});

test('the line of a cluster shows the fullest range, even if less than one per cent of the range is in use', () => {
  const ranges = [0, 1].map((used) => ({ ...aSlash24(), used, usedPercent: 0 }));
  expect(cell('FULLEST', { ranges })).toMatch(/^▏ +<1%$/);
});

const later = { lastRanAtMs: NOW_MS - 4_000 };
test.each([
  ['a pass that was not recorded, but that refreshed a lease after the recorded pass', later, 39_000, '4s ago'],
  ['a pass of a late loop', {}, 61_000, '61s ago'],
  ['a pass that failed', { state: 'failing' }, 39_000, '39s ago'],
])('the line of a cluster shows the age of its last pass: %s', (_, loop, ageMs, shown) => {
  const [status] = loopsOf({ loop: 'kubernetes-service', intervalSeconds: 10 });
  const lastPass = status?.lastPass && { ...status.lastPass, startedAtMs: NOW_MS - ageMs };
  expect(cell('LAST PASS', { loops: [{ ...status, lastPass, ...loop } as LoopStatus] })).toBe(shown);
});

test('the status of a cluster lists at most ten pending writes', () => {
  const loops = loopsOf().map((loop) => ({ ...loop, wouldWrite: ['a', 'b', 'c'] }));
  const lines = statusLines(aClusterStatus({ loops }), NOW_MS, output);
  const listed = lines.slice(lines.indexOf('Would write') + 1, lines.indexOf('', lines.indexOf('Would write')));
  expect(listed).toHaveLength(11);
  expect(listed[10]).toBe('... and 2 more: kbctl status demo -o yaml');
});

test('the line of a range shows the range of the last pass, and the new range in the spec, which no pass has counted yet', () => {
  const column = RANGE_COLUMNS.find(({ title }) => title === 'RANGE');
  expect(column?.text({ ...aSlash24(), range: '10.0.0.0/24', specRange: '10.0.0.0/22' })).toBe(
    '10.0.0.0/24 (not yet 10.0.0.0/22)',
  );
});

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test('ages have the format of kubectl', () => {
  expect([-2_000, -1_999, 0, 999, 5 * SECOND, 119 * SECOND].map(formatAge)).toEqual([
    ...['<invalid>', '0s', '0s', '0s', '5s', '119s'],
  ]);
  const minutes = [2, 3 + 1 / 3, 10 - 1 / 60_000, 10.99, 179, 180, 7 * 60 + 59, 8 * 60 + 59];
  expect(minutes.map((count) => formatAge(count * MINUTE))).toEqual([
    ...['2m', '3m20s', '9m59s', '10m', '179m', '3h', '7h59m', '8h'],
  ]);
  const hours = [47, 48, 7 * 24 + 23, 8 * 24 + 23, 729 * 24, 733 * 24, 8 * 365 * 24 + 72];
  expect(hours.map((count) => formatAge(count * HOUR))).toEqual(['47h', '2d', '7d23h', '8d', '729d', '2y3d', '8y']);
});

test('a time in the future has no age: it is shown as <invalid>', () => {
  expect([ago(2_000, 0), ago(0, 2_000), ago(undefined, 0)]).toEqual(['<invalid>', '2s ago', '']);
});

test('the age of a past time has at most seven characters', () => {
  fc.assert(fc.property(fc.nat(2 ** 31 - 1), (seconds) => formatAge(seconds * SECOND).length <= 7));
});

test('durations are shown with at most two units', () => {
  const shown = { '0ms': 0, '13ms': 12.5, '412ms': 412, '1s': 1_000, '1.2s': 1_290, '45s': 45_900, '3m20s': 200_000 };
  expect(Object.values(shown).map(formatDuration)).toEqual(Object.keys(shown));
  expect([formatDuration(-3), formatDuration(119_999)]).toEqual(['0ms', '119s']);
});

test('the status of a cluster names the loop whose run record omits findings, even if another loop has findings too', () => {
  const findings = [aFinding({ loop: 'kubernetes-service' }), aFinding({ loop: 'cluster-ip-repair' })];
  const counts: Partial<Record<Loop, number>> = { 'kubernetes-service': 1, 'cluster-ip-repair': 7 };
  const loops = loopsOf().map((one) => ({
    ...one,
    lastPass: { ...found(one.lastPass), findings: counts[one.loop] ?? 0 },
  }));
  const lines = statusLines(aClusterStatus({ loops, findings, findingTotal: 8 }), NOW_MS, output);
  expect(lines.at(-1)).toBe('... and 6 more: kbctl run-once cluster-ip-repair demo --dry-run');
});
