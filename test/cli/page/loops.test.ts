import { expect, test } from '@jest/globals';
import { clusterDetails } from '../../../cli/page/cluster-details.ts';
import type { LoopStatus } from '../../../lib/status/cluster-status.ts';
import { aClusterStatus, STATUS_AT_MS } from '../../support/a-fleet-status.ts';

const lastPass = {
  startedAtMs: STATUS_AT_MS - 53_000,
  durationMs: 9,
  outcome: 'succeeded',
  mode: 'enforce',
  counts: {},
  findings: 0,
} as const;

test.each<[string, Partial<LoopStatus>, string]>([
  [
    'within the last minute, where it runs more often than it is recorded',
    { intervalSeconds: 15 },
    'within the last minute',
  ],
  ['when its leases show that it ran', { intervalSeconds: 15, lastRanAtMs: STATUS_AT_MS - 4_000 }, '4 s ago'],
  ['when it was, where each pass is recorded', { intervalSeconds: 180 }, '53 s ago'],
  ['when it was, where a loop is late', { intervalSeconds: 15, state: 'late' }, '53 s ago'],
])('the last pass of a loop is shown %s', (_, fields, shown) => {
  const loop: LoopStatus = {
    loop: 'cluster-ip-repair',
    state: 'good',
    intervalSeconds: 15,
    failuresInARow: 0,
    lastPass,
    ...fields,
  };
  expect(String(clusterDetails(aClusterStatus({ loops: [loop] }), STATUS_AT_MS, 100_000))).toContain(
    `>${shown}</time> succeeded`,
  );
});
