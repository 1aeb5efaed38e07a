import { describe, expect, test } from '@jest/globals';
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

describe('the finding that no API server is live', () => {
  const UNREACHED = 'Start an API server, or make its probe URL reachable from here (apiServers[].probe)';
  const UNDO = '"kbctl deregister prod 10.0.0.1 --undo" ends a withdrawal';

  test.each([
    {
      name: 'a spec without an address',
      outcomes: [],
      withdrawn: [],
      why: 'no address is known to probe. Name the API servers in the spec (apiServers)',
    },
    {
      name: 'a withdrawn address and one that did not answer',
      outcomes: ['10.0.0.1', '10.0.0.2'],
      withdrawn: ['10.0.0.1'],
      why: `10.0.0.1 is withdrawn until 1970-01-01T02:46:40.001Z; 10.0.0.2 timed out. The endpoints stay unchanged. ${UNDO}. ${UNREACHED}`,
    },
    {
      name: 'a hundred addresses with one answer',
      outcomes: Array.from({ length: 100 }, (_, n) => `10.0.1.${n}`),
      withdrawn: [],
      why: `100 addresses timed out. The endpoints stay unchanged. ${UNREACHED}`,
    },
  ])('the finding for $name contains the reasons and the resolution', ({ outcomes, withdrawn, why }) => {
    const finding = noLiveLease({
      spec: aClusterSpec({ name: 'prod' }),
      nowMs: NOW,
      leases: withdrawn.map((address) => aLease({ address, withdrawnUntilMs: NOW + 1 })),
      outcomes: new Map(outcomes.map((address) => [address, miss])),
    });
    expect(finding).toEqual({ type: 'noLiveLease', message: `${REFUSED}: ${why}` });
  });
});

describe('the finding that the server of a withdrawn address was not seen down', () => {
  const lease = { address: '10.0.0.1', expiresAtMs: NOW - 600_000, withdrawnUntilMs: NOW + 1 };

  test('ten minutes after the lease of a withdrawn address expired, a finding reports that the server was not seen down', () => {
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
});

describe('the findings about probes', () => {
  test.each<{ readonly name: string; readonly other: Partial<ProbeOutcome>; readonly finding: readonly Finding[] }>([
    {
      name: 'an answer that cannot be from an API server causes a finding with the settings that the user must check',
      other: { odd: true },
      finding: [
        {
          type: 'oddProbe',
          message: 'the probe of 10.0.0.1: timed out. Check its URL, its server name and the CA',
          item: '10.0.0.1',
        },
      ],
    },
    {
      name: 'a probe during which this process was busy causes a finding',
      other: { late: true, odd: true },
      finding: [
        { type: 'other', message: 'this process was busy while it probed 10.0.0.1: timed out', item: '10.0.0.1' },
      ],
    },
    {
      name: 'a probe that ended before its result was known causes a finding',
      other: { verdict: 'unknown' },
      finding: [{ type: 'other', message: 'no result of the probe of 10.0.0.1: timed out', item: '10.0.0.1' }],
    },
  ])('the rules for findings of a probe: $name', ({ other, finding }) => {
    expect(probeFindings(new Map([['10.0.0.1', { ...miss, ...other }]]))).toEqual(finding);
  });
});

describe('the finding about a slice of another writer', () => {
  const named = (name: string, labels?: Readonly<Record<string, string>>) => ({
    ...aSlice([]),
    metadata: { name, ...(labels && { labels }) },
  });
  const MANAGED = { 'endpointslice.kubernetes.io/managed-by': 'mirror' };

  test.each([
    {
      name: 'reports our slice with the label of another manager',
      slice: named('kubernetes', MANAGED),
      why: 'is managed by mirror',
    },
    { name: 'reports a slice with another name', slice: named('other'), why: 'is not ours' },
  ])('the check for foreign slices $name', ({ slice, why }) => {
    const item = slice.metadata.name;
    const message = `EndpointSlice default/${item} of the kubernetes Service ${why}; this pass does not delete it`;
    expect(foreignSlice(slice)).toEqual([{ type: 'foreignSlice', message, item }]);
  });
});
