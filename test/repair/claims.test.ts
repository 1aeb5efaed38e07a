import { describe, expect, test } from '@jest/globals';
import { type RefusalCode, refused } from '../../lib/allocator/refusal.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { type ClaimedRange, type ClaimResult, type EnterClaims, FindingList } from '../../lib/repair/claims.ts';
import { clusterIpClaims } from '../../lib/repair/cluster-ips.ts';
import { nodePortClaims, nodePortsOf } from '../../lib/repair/node-ports.ts';
import { service, withAddresses, withNodePorts } from './services.ts';

/** Returns a range that answers every claim in the same way, and the claimed items. */
function answering(spec: string, answer: ClaimResult): ClaimedRange & { readonly claims: string[] } {
  const claims: string[] = [];
  const claim = (item: string) => {
    claims.push(item);
    return answer;
  };
  return { spec, claims, claim };
}

const refusal = (code: RefusalCode, message = 'no') => refused(code, message);
const addresses = (answer: ClaimResult, spec = '10.0.0.0/24') => clusterIpClaims([answering(spec, answer)]);
const ports = (answer: ClaimResult) => nodePortClaims([answering('100-200', answer)]);

/** Enters the claims of these Services. Returns the findings, and the error of the first claim that would end the pass. */
function enterAll(enter: EnterClaims, ...services: readonly ServiceClaim[]) {
  const found = new FindingList();
  const errors = services.map((each) => enter(each, found));
  return { ...found, error: errors.find((error) => error !== undefined) };
}

/*
 * The golden cases compare the events with upstream, except the events of a claim that ends the pass, because no golden case
 * contains such a claim.
 */

const ADDRESS = withAddresses('s', '10.0.0.5');
const OTHER_ADDRESS = withAddresses('s', '010.1.0.5');
const INVALID_ADDRESS = withAddresses('s', 'not-b4nd');
const IPV6_ADDRESS = withAddresses('s', 'FD00::08');
const PORT = withNodePorts('s', 111);
const [IP, OF] = ['the cluster IP [IPv4]:10.0.0.5 for service a/s', 'for service a/s'];
const DUPLICATE = 'was assigned to multiple services; please recreate';
const [NO_ADDRESS, NO_PORT] = ['is not within the service CIDR 10.0.0.0/24', 'is not within the port range 100-200'];
const OUT_OF_RANGE = `the cluster IP [IPv4]:10.1.0.5 ${OF} ${NO_ADDRESS}; please recreate`;
const INVALID = `the cluster IP not-b4nd ${OF} is not a valid IP; please recreate`;
const NO_FAMILY = `the cluster IP fd00::8(IPv6) ${OF} is of ip family that is no longer configured on cluster; please recreate`;
const UNRECORDED_PORT = `the node port 111 ${OF} is not allocated; repairing`;
const [TAKEN, OUTSIDE] = [refusal('AlreadyAllocated'), refusal('NotInRange')];

const findings: readonly (readonly [name: string, EnterClaims, ServiceClaim, type: string, message: string])[] = [
  ['an address that is not recorded', addresses('notRecorded'), ADDRESS, 'repair', `${IP} is not allocated; repairing`],
  ['an address that is claimed already', addresses(TAKEN), ADDRESS, 'duplicate', `${IP} ${DUPLICATE}`],
  ['an address out of range, in its canonical form', addresses(OUTSIDE), OTHER_ADDRESS, 'outOfRange', OUT_OF_RANGE],
  ['an invalid address, as the Service contains it', addresses(OUTSIDE), INVALID_ADDRESS, 'invalid', INVALID],
  ['an address of a family without a range', addresses('recorded'), IPV6_ADDRESS, 'invalid', NO_FAMILY],
  ['a port that is not recorded', ports('notRecorded'), PORT, 'repair', UNRECORDED_PORT],
  ['a port that is claimed already', ports(TAKEN), PORT, 'duplicate', `the node port 111 ${OF} ${DUPLICATE}`],
  ['a port out of range', ports(OUTSIDE), PORT, 'outOfRange', `the port 111 ${OF} ${NO_PORT}; please recreate`],
];

const [FULL, NOT_READY] = [refusal('Full'), refusal('NotReady', 'test error')];
const TWO_PORTS = withNodePorts('s', 111, 112);
const [IPV6, UNKNOWN] = ['cluster IP [IPv6]:fd00::5', 'due to an unknown error'];
const CIDR_FULL =
  'CIDR 10.0.0.0/24 is full; you must widen the CIDR in order to create new services for Cluster IP [IPv4]:10.0.0.5';
const PORTS_FULL = 'range 100-200 is full; you must widen the port range in order to create new services';

type End = readonly [name: string, EnterClaims, ServiceClaim, reason: string, note: string, message: string];
const ends: readonly End[] = [
  [
    'a full range of addresses',
    addresses(FULL),
    withAddresses('s', '10.0.0.5', '10.0.0.6'),
    'ServiceCIDRFull',
    `Service ${CIDR_FULL}`,
    `the service ${CIDR_FULL}`,
  ],
  [
    'an unknown error of the allocator of addresses',
    addresses(NOT_READY, 'fd00::/112'),
    withAddresses('s', 'fd00::5'),
    'UnknownError',
    `Unable to allocate ${IPV6} ${UNKNOWN}`,
    `unable to allocate ${IPV6} ${OF} ${UNKNOWN}, exiting: test error`,
  ],
  ['a full range of ports', ports(FULL), TWO_PORTS, 'PortRangeFull', `Port ${PORTS_FULL}`, `the port ${PORTS_FULL}`],
  [
    'an unknown error of the allocator of ports',
    ports(NOT_READY),
    TWO_PORTS,
    'UnknownError',
    `Unable to allocate port 111 ${UNKNOWN}`,
    `unable to allocate port 111 ${OF} ${UNKNOWN}, exiting: test error`,
  ],
];

test.each(findings)('a finding has the same message as upstream for %s', (_, enter, claimed, type, message) => {
  expect(enterAll(enter, claimed)).toMatchObject({ error: undefined, listed: [{ type, message }] });
});

test.each(ends)('after %s, a pass ends with the same error as upstream', (_, enter, claimed, reason, note, message) => {
  const action = claimed.ports.length > 0 ? 'PortAllocation' : 'ClusterIPAllocation';
  const [type, code] = reason === 'UnknownError' ? ['unknown', 'Unknown'] : ['full', 'Full'];
  const listed = [{ type, message, event: { reason, action, note } }];
  expect(enterAll(enter, claimed)).toMatchObject({ error: { code, message }, listed });
});

test('an event about a Service refers to the uid and resourceVersion of the listed Service', () => {
  const listed = service('s', { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'], uid: 'u', resourceVersion: '7' });
  const found = enterAll(addresses('notRecorded'), listed);
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'a', name: 's', uid: 'u', resourceVersion: '7' };
  expect(found.listed[0]?.event?.regarding).toEqual(regarding);
});

test('a pass lists its first 1,000 findings, and counts the others by type', () => {
  const services = Array.from({ length: 1_000 }, (_, at) => withAddresses(`s-${at}`, 'bad', 'worse', '10.0.0.5'));
  const { listed, unlisted } = enterAll(addresses('notRecorded'), ...services);
  expect(listed).toHaveLength(1_000);
  expect(Object.fromEntries(unlisted)).toEqual({ invalid: 1_333, repair: 667 });
});

test('a pass reports an IPv4-mapped address as invalid if there is no IPv4 range', () => {
  const { listed } = enterAll(addresses(OUTSIDE, 'fd00::/112'), withAddresses('s', '::ffff:10.0.0.6'));
  expect(listed).toMatchObject([{ type: 'invalid', item: '10.0.0.6' }]);
});

test('a pass claims no address for a Service without a cluster IP', () => {
  const range = answering('10.0.0.0/24', 'recorded');
  const { listed } = enterAll(clusterIpClaims([range]), service('s', { clusterIP: '', clusterIPs: ['10.0.0.5'] }));
  expect([range.claims, listed]).toEqual([[], []]);
});

test.each(['10.1.0.0/24', '10.0.0.0'])('clusterIpClaims rejects the ranges 10.0.0.0/24 and %s', (other) => {
  const ranges = ['10.0.0.0/24', other].map((spec) => answering(spec, 'recorded'));
  const message = `10.0.0.0/24 and ${other} are not ranges of different families: correct the cluster spec`;
  expect(() => clusterIpClaims(ranges)).toThrow(expect.objectContaining({ code: 'BadRange', message }));
});

test('nodePortClaims throws an error if the caller passes no range of node ports', () => {
  expect(() => nodePortClaims([])).toThrow('node ports have one range');
});

type Port = readonly [protocol: string, nodePort: number];
const tcp = (...all: number[]): Port[] => all.map((port) => ['TCP', port]);

describe('node ports of a Service', () => {
  // The golden cases have the other Services.
  test.each<{ name: string; ports: readonly Port[]; health?: number; expected: readonly number[] }>([
    { name: 'an absent protocol differs from TCP', ports: [['', 111], ...tcp(111), ['', 111]], expected: [111, 111] },
    { name: 'a health check port is claimed even if there is no other port', ports: [], health: 144, expected: [144] },
  ])('$name', ({ ports: all, health = 0, expected }) => {
    const claims = all.map(([protocol, nodePort]) => ({ protocol, nodePort }));
    expect(nodePortsOf(service('s', { ports: claims, healthCheckNodePort: health }))).toEqual(expected);
  });
});
