import { expect, test } from '@jest/globals';
import type { Finding } from '../../lib/cluster/finding.ts';
import {
  foreignSlice,
  noLiveLease,
  probeFindings,
  standingWithdrawals,
} from '../../lib/endpoints/endpoint-findings.ts';
import type { ProbeOutcome } from '../../lib/leases/probe-outcome.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aSlice } from '../support/an-endpoints.ts';
import { aLease } from '../support/put-lease.ts';

const NOW = 10_000_000;
const REFUSED =
  'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service';
const miss: ProbeOutcome = { verdict: 'silence', odd: false, detail: 'timed out' };

const UNREACHED = 'Start an API server, or make its probe URL reachable from here (apiServers[].probe)';
const UNDO = '"kbctl deregister prod 10.0.0.1 --undo" ends a withdrawal';

const NO_ADDRESS = 'no address is known to probe. Name the API servers in the spec (apiServers)';
const WITHDRAWN = '10.0.0.1 is withdrawn until 1970-01-01T02:46:40.001Z';
const STAY = 'The endpoints stay unchanged';
const ONE_WITHDRAWN = `${WITHDRAWN}; 10.0.0.2 timed out. ${STAY}. ${UNDO}. ${UNREACHED}`;
const hundred = Array.from({ length: 100 }, (_, n) => `10.0.1.${n}`);
test.each<[string, string[], string[], string]>([
  ['a spec without an address', [], [], NO_ADDRESS],
  ['a withdrawn address and one that did not answer', ['10.0.0.1', '10.0.0.2'], ['10.0.0.1'], ONE_WITHDRAWN],
  ['a hundred addresses without an answer', hundred, [], `100 addresses timed out. ${STAY}. ${UNREACHED}`],
])('the finding for %s contains the reasons and the resolution', (_, outcomes, withdrawn, why) => {
  const finding = noLiveLease({
    spec: aClusterSpec({ name: 'prod' }),
    nowMs: NOW,
    leases: withdrawn.map((address) => aLease({ address, withdrawnUntilMs: NOW + 1 })),
    outcomes: new Map(outcomes.map((address) => [address, miss])),
  });
  expect(finding).toEqual({ type: 'noLiveLease', message: `${REFUSED}: ${why}` });
});

const lease = { address: '10.0.0.1', expiresAtMs: NOW - 600_000, withdrawnUntilMs: NOW + 1 };

test('ten minutes after the lease of a withdrawn address expired, a finding reports that no pass has found the server down', () => {
  const message =
    '10.0.0.1 is withdrawn, and its API server has not been seen down since. If it is to be published, run "kbctl deregister prod 10.0.0.1 --undo"';
  expect(standingWithdrawals('prod', [aLease(lease)], NOW)).toEqual([{ type: 'other', message, item: '10.0.0.1' }]);
});

test.each([
  { name: 'the lease expired less than ten minutes ago', other: { expiresAtMs: NOW - 599_999 } },
  { name: 'the address never had a lease', other: { generation: 0 } },
  { name: 'the withdrawal is over', other: { withdrawnUntilMs: NOW } },
])('a withdrawn address causes no finding if $name', ({ other }) => {
  expect(standingWithdrawals('prod', [aLease({ ...lease, ...other })], NOW)).toEqual([]);
});

const odd = 'the probe of 10.0.0.1: timed out. Check its URL, its server name and the CA';
const late = 'this process was busy while it probed 10.0.0.1: timed out';
const early = 'no result of the probe of 10.0.0.1: timed out';
test.each<[string, Partial<ProbeOutcome>, Finding['type'], string]>([
  ['with an answer that cannot be from an API server', { odd: true }, 'oddProbe', odd],
  ['during which this process was busy', { late: true, odd: true }, 'other', late],
  ['that ended before its result was known', { verdict: 'unknown' }, 'other', early],
])('a probe %s causes a finding', (_, other, type, message) => {
  expect(probeFindings(new Map([['10.0.0.1', { ...miss, ...other }]]))).toEqual([{ type, message, item: '10.0.0.1' }]);
});

const MANAGED = { 'endpointslice.kubernetes.io/managed-by': 'mirror' };

test.each([
  ['our slice with the label of another manager', 'kubernetes', MANAGED, 'is managed by mirror'],
  ['a slice with another name', 'other', {}, 'is not ours'],
])('the check for foreign slices reports %s', (_, item, labels, why) => {
  const message = `EndpointSlice default/${item} of the kubernetes Service ${why}; this pass does not delete it`;
  const slice = { ...aSlice([]), metadata: { name: item, labels } };
  expect(foreignSlice(slice)).toEqual([{ type: 'foreignSlice', message, item }]);
});
