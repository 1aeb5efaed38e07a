import { describe, expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { clusterIpWalk } from '../../lib/repair/cluster-ips.ts';
import type { ClaimResult, Ledger } from '../../lib/repair/walk.ts';
import { service, withAddresses } from './services.ts';

/** A ledger that answers every claim alike, and keeps what was claimed. */
function answering(spec: string, answer: ClaimResult): Ledger<string> & { readonly claims: string[] } {
  const claims: string[] = [];
  return {
    spec,
    claims,
    claim: (item) => {
      claims.push(item);
      return answer;
    },
  };
}

const refusal = (code: AllocatorError['code'], message = 'no') => new AllocatorError(code, message);

const outcomes = [
  {
    name: 'an address that is not recorded is repaired',
    address: '10.0.0.5',
    answer: 'notRecorded' as const,
    type: 'repair',
    reason: 'ClusterIPNotAllocated',
    action: 'ClusterIPAllocation',
    note: 'Cluster IP [IPv4]:10.0.0.5 is not allocated; repairing',
    message: 'the cluster IP [IPv4]:10.0.0.5 for service s/a is not allocated; repairing',
  },
  {
    name: 'an address that is claimed already is a duplicate',
    address: '10.0.0.5',
    answer: refusal('AlreadyAllocated'),
    type: 'duplicate',
    reason: 'ClusterIPAlreadyAllocated',
    action: 'ClusterIPAllocation',
    note: 'Cluster IP [IPv4]:10.0.0.5 was assigned to multiple services; please recreate service',
    message: 'the cluster IP [IPv4]:10.0.0.5 for service s/a was assigned to multiple services; please recreate',
  },
  {
    name: 'an address outside is out of range, and named canonically',
    address: '010.1.0.5',
    answer: refusal('NotInRange'),
    type: 'outOfRange',
    reason: 'ClusterIPOutOfRange',
    action: 'ClusterIPAllocation',
    note: 'Cluster IP [IPv4]:10.1.0.5 is not within the service CIDR 10.0.0.0/24; please recreate service',
    message:
      'the cluster IP [IPv4]:10.1.0.5 for service s/a is not within the service CIDR 10.0.0.0/24; please recreate',
  },
  {
    name: 'what is no address is invalid, and named as it is',
    address: 'not-b4nd',
    answer: refusal('NotInRange'),
    type: 'invalid',
    reason: 'ClusterIPNotValid',
    action: 'ClusterIPValidation',
    note: 'Cluster IP not-b4nd is not a valid IP; please recreate service',
    message: 'the cluster IP not-b4nd for service s/a is not a valid IP; please recreate',
  },
  {
    name: 'an address of a family without a range is invalid',
    address: 'FD00::08',
    answer: 'recorded' as const,
    type: 'invalid',
    reason: 'ClusterIPNotValid',
    action: 'ClusterIPValidation',
    note: 'Cluster IP fd00::8(IPv6) is of ip family that is no longer configured on cluster; please recreate service',
    message:
      'the cluster IP fd00::8(IPv6) for service s/a is of ip family that is no longer configured on cluster; please recreate',
  },
];

describe('a walk over cluster IPs', () => {
  test.each(outcomes)('$name', ({ address, answer, type, reason, action, note, message }) => {
    const walk = clusterIpWalk([answering('10.0.0.0/24', answer)]);
    expect(walk.visit(withAddresses('s', address))).toBeUndefined();
    expect(walk.findings.listed).toMatchObject([{ type, message, event: { reason, action, note } }]);
  });

  test('an event regards the Service as it was listed', () => {
    const walk = clusterIpWalk([answering('10.0.0.0/24', 'notRecorded')]);
    walk.visit(service('s', { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'], uid: 'u', resourceVersion: '7' }));
    expect(walk.findings.listed[0]?.event?.regarding).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      namespace: 'a',
      name: 's',
      uid: 'u',
      resourceVersion: '7',
    });
  });

  test('lists its first findings, and counts the others by their type', () => {
    const walk = clusterIpWalk([answering('10.0.0.0/24', 'notRecorded')]);
    for (let at = 0; at < 1_000; at += 1) walk.visit(withAddresses(`s-${at}`, 'bad', 'worse', '10.0.0.5'));
    expect(walk.findings.listed).toHaveLength(1_000);
    expect([...walk.findings.unlisted]).toEqual([
      ['invalid', 1_333],
      ['repair', 667],
    ]);
  });

  test('each address of a Service is claimed of the range of its family', () => {
    const [ipv4, ipv6] = [answering('10.0.0.0/24', 'recorded'), answering('fd00::/112', 'recorded')];
    const walk = clusterIpWalk([ipv6, ipv4]);
    walk.visit(withAddresses('both', '10.0.0.5', 'fd00::5'));
    expect([ipv4.claims, ipv6.claims, walk.findings.listed]).toEqual([['10.0.0.5'], ['fd00::5'], []]);
  });

  test('an IPv4-mapped address is claimed of the IPv4 range', () => {
    const [ipv4, ipv6] = [answering('10.0.0.0/24', 'notRecorded'), answering('fd00::/112', refusal('NotInRange'))];
    const walk = clusterIpWalk([ipv4, ipv6]);
    walk.visit(withAddresses('mapped', '::ffff:10.0.0.6'));
    expect(ipv4.claims).toHaveLength(1);
    expect(walk.findings.listed).toMatchObject([{ type: 'repair', item: '10.0.0.6' }]);
  });

  test.each([
    { name: 'headless', clusterIP: 'None', clusterIPs: ['None'] },
    { name: 'without an address', clusterIP: '', clusterIPs: ['10.0.0.5'] },
    { name: 'with an empty list', clusterIP: '10.0.0.5', clusterIPs: [] },
  ])('a Service $name claims nothing', ({ clusterIP, clusterIPs }) => {
    const ledger = answering('10.0.0.0/24', 'recorded');
    const walk = clusterIpWalk([ledger]);
    walk.visit(service('s', { clusterIP, clusterIPs }));
    expect([ledger.claims, walk.findings.listed, walk.services]).toEqual([[], [], 1]);
  });

  test('an allocator that says that it is full ends the walk', () => {
    const walk = clusterIpWalk([answering('10.0.0.0/24', refusal('Full', 'range is full'))]);
    const why = 'is full; you must widen the CIDR in order to create new services for Cluster IP [IPv4]:10.0.0.5';
    expect(walk.visit(withAddresses('s', '10.0.0.5', '10.0.0.6'))).toMatchObject({
      code: 'Full',
      message: `the service CIDR 10.0.0.0/24 ${why}`,
    });
    expect(walk.findings.listed).toMatchObject([
      {
        type: 'full',
        message: `the service CIDR 10.0.0.0/24 ${why}`,
        event: {
          reason: 'ServiceCIDRFull',
          action: 'ClusterIPAllocation',
          note: `Service CIDR 10.0.0.0/24 ${why}`,
        },
      },
    ]);
  });

  test('an allocator that fails for an unknown reason ends the walk', () => {
    const cause = refusal('NotReady', 'test error');
    const error = clusterIpWalk([answering('10.0.0.0/24', cause)]).visit(withAddresses('s', '10.0.0.5'));
    expect(error).toMatchObject({
      code: 'Unknown',
      cause,
      message:
        'unable to allocate cluster IP [IPv4]:10.0.0.5 for service s/a due to an unknown error, exiting: test error',
    });
  });

  test('the event of an unknown error does not tell the error', () => {
    const walk = clusterIpWalk([answering('fd00::/112', refusal('NotReady', 'test error'))]);
    walk.visit(withAddresses('s', 'fd00::5'));
    expect(walk.findings.listed).toMatchObject([
      {
        type: 'unknown',
        event: {
          reason: 'UnknownError',
          action: 'ClusterIPAllocation',
          note: 'Unable to allocate cluster IP [IPv6]:fd00::5 due to an unknown error',
        },
      },
    ]);
  });

  test.each([
    { name: 'of one family', specs: ['10.0.0.0/24', '10.1.0.0/24'] },
    { name: 'that do not parse', specs: ['10.0.0.0/24', 'garbage'] },
  ])('ranges $name are refused', ({ specs }) => {
    expect(() => clusterIpWalk(specs.map((spec) => answering(spec, 'recorded')))).toThrow(
      `${specs.join(' and ')} are not ranges of different families`,
    );
  });
});
