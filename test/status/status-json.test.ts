import { expect, test } from '@jest/globals';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { fleetJson, statusJson } from '../../lib/status/status-json.ts';
import { aRunRecord, runRecords } from '../support/run-records.ts';
import { aCluster, aLease, aStoredRange, NOW_MS, statusOf } from './status-support.ts';

const hold = { owner: 'team-a', takenUpBy: 'any', items: ['10.0.0.1'], untilMs: NOW_MS + 1 } as const;
const status = statusOf({
  pausedAll: { untilMs: NOW_MS + 60_000, reason: 'an upgrade', by: 'me' },
  cluster: aCluster({}, { owner: { stack: 'prod' } }),
  leases: [aLease({ withdrawnUntilMs: NOW_MS + 1 })],
  ranges: [{ key: RANGE_KEYS.primary, stored: aStoredRange([0], { holds: [hold] }), savedAtMs: NOW_MS }],
  records: {
    ...runRecords(NOW_MS),
    'cluster-ip-repair': aRunRecord(NOW_MS, { findings: [{ type: 'leak', message: 'm' }], counts: { atMs: 1 } }),
  },
});

test('a status as JSON has ISO times, durations in milliseconds, and no maps', () => {
  const at = '2023-11-14T22:13:20.000Z';
  const json = statusJson(status);
  expect(json).toMatchObject({
    name: 'demo',
    health: 'warning',
    owner: { stack: 'prod', packaged: false },
    paused: { until: '2023-11-14T22:14:20.000Z', reason: 'an upgrade', by: 'me', all: true },
    apiServers: [{ expiresAt: '2023-11-14T22:13:30.000Z', withdrawnUntil: '2023-11-14T22:13:20.001Z' }],
    ranges: [
      {
        key: 'ranges/serviceips',
        savedAt: at,
        used: 1,
        holds: [{ ...without(hold), until: '2023-11-14T22:13:20.001Z' }],
      },
    ],
    findings: [{ type: 'leak', seenAt: at }],
  });
  expect(json.loops[0]?.lastPass).toMatchObject({ startedAt: at, durationMs: 12.5 });
  expect(json.loops[0]?.lastSuccessAt).toBe(at);
  expect(json.ranges[0]).not.toHaveProperty('map');
  expect(JSON.parse(JSON.stringify(json))).toEqual(json);
});

test('counts of a pass keep their names', () => {
  expect(statusJson(status).loops[2]?.lastPass?.counts).toEqual({ atMs: 1 });
});

test('a number that is no time is kept', () => {
  expect(statusJson({ ...status, paused: { untilMs: 1e20, reason: 'r', by: 'b', all: false } }).paused?.until).toBe(
    '100000000000000000000',
  );
});

test('all clusters as JSON are the same, with the time and the table', () => {
  const fleet = { atMs: NOW_MS, table: 't', clusters: [status], unreadable: [] };
  expect(fleetJson(fleet)).toEqual({
    at: '2023-11-14T22:13:20.000Z',
    table: 't',
    clusters: [statusJson(status)],
    unreadable: [],
  });
});

function without({ owner, takenUpBy, items }: typeof hold) {
  return { owner, takenUpBy, items };
}
