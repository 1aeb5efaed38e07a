import { describe, expect, test } from '@jest/globals';
import { isEmpty, planOf } from '../../lib/admission/plan.ts';
import { serviceShape } from '../../lib/admission/service.ts';
import type { IPFamily } from '../../lib/allocator/ip-address.ts';
import { aReview, type SpecFields } from '../support/admission-review.ts';

const IPV4: readonly IPFamily[] = ['IPv4'];
const DUAL: readonly IPFamily[] = ['IPv4', 'IPv6'];
const SIX_FIRST: readonly IPFamily[] = ['IPv6', 'IPv4'];

function specOf(fields: SpecFields) {
  return serviceShape.parse(aReview({ spec: fields }).request.object).spec;
}

/** Families or addresses that are wanted, and node ports: `next@0` is any for the first port, `30080@1+2` one for two. */
function wanted(fields: SpecFields, old: SpecFields | undefined, configured: readonly IPFamily[]): string {
  const plan = planOf(specOf(fields), old && specOf(old), configured);
  const addresses = plan.addresses.map(({ family, value, index }) => `${value ?? family}@${index}`);
  const ports = plan.ports.map(({ value, at }) => `${value ?? 'next'}@${at === 'healthCheck' ? at : at.join('+')}`);
  return [...addresses, ...ports].join(' ');
}

const port = (number: number, fields: { protocol?: string; nodePort?: number; name?: string } = {}) => ({
  name: `p${number}${fields.protocol === undefined ? '' : '-udp'}`,
  protocol: 'TCP',
  port: number,
  ...fields,
});
const LOCAL = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };

describe('a new Service', () => {
  test.each<[string, SpecFields, readonly IPFamily[], string]>([
    ['a plain one gets an address of the primary family', {}, IPV4, 'IPv4@0'],
    ['and where IPv6 is the primary', {}, SIX_FIRST, 'IPv6@0'],
    ['a family that is named is taken', { ipFamilies: ['IPv6'] }, DUAL, 'IPv6@0'],
    [
      'preferring two stacks gets both where there are two',
      { ipFamilyPolicy: 'PreferDualStack' },
      DUAL,
      'IPv4@0 IPv6@1',
    ],
    [
      'the family that is named comes first',
      { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'] },
      DUAL,
      'IPv6@0 IPv4@1',
    ],
    ['an address may be asked for', { clusterIP: '10.0.0.5' }, IPV4, '10.0.0.5@0'],
    [
      'one address of two may be asked for',
      { clusterIP: 'fd00::5', clusterIPs: ['fd00::5'], ipFamilyPolicy: 'RequireDualStack' },
      DUAL,
      'fd00::5@0 IPv4@1',
    ],
    ['a headless one gets nothing', { clusterIP: 'None', clusterIPs: ['None'] }, DUAL, ''],
    ['an ExternalName gets nothing', { type: 'ExternalName', ports: [] }, DUAL, ''],
  ])('%s', (_what, fields, configured, expected) => {
    expect(wanted(fields, undefined, configured)).toBe(expected);
  });

  test.each<[string, SpecFields]>([
    ['two stacks where there is one', { ipFamilyPolicy: 'RequireDualStack' }],
    ['a family that the cluster has not', { ipFamilies: ['IPv6'] }],
    ['an address of it', { clusterIP: 'fd00::1' }],
    ['two addresses under one stack', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'] }],
    [
      'two addresses of one family',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'], ipFamilyPolicy: 'PreferDualStack' },
    ],
    ['fields that differ', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] }],
    ['the plural alone', { clusterIPs: ['10.0.0.2'] }],
    [
      'None beside an address',
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'None'], ipFamilyPolicy: 'PreferDualStack' },
    ],
    ['an address of another family than it names', { clusterIP: '10.0.0.1', ipFamilies: ['IPv6'] }],
    ['a family twice', { ipFamilies: ['IPv4', 'IPv4'], ipFamilyPolicy: 'PreferDualStack' }],
    ['a policy that is none', { ipFamilyPolicy: 'Triple' }],
    ['no ports', { ports: [] }],
    ['a port above 65535', { ports: [port(65_536)] }],
    ['a port twice', { ports: [port(80, { name: 'a' }), port(80, { name: 'b' })] }],
    ['a protocol that is none', { ports: [port(80, { protocol: 'ICMP' })] }],
    ['two ports of which one has no name', { ports: [port(80), { port: 81 }] }],
    ['two ports of one name', { ports: [port(80, { name: 'a' }), port(81, { name: 'a' })] }],
    ['a name of a port that is no label', { ports: [port(80, { name: 'A_B' })] }],
  ])('%s: the registry refuses it, and nothing is taken', (_what, fields) => {
    expect(wanted({ ...fields, type: 'NodePort' }, undefined, IPV4)).toBe('');
  });

  test.each<[string, SpecFields, string]>([
    ['NodePort: each port gets one', { type: 'NodePort', ports: [port(80), port(443)] }, 'next@0 next@1'],
    [
      'ports of one number share one',
      { type: 'NodePort', ports: [port(53), port(53, { protocol: 'UDP' })] },
      'next@0+1',
    ],
    [
      'and what one of them asks for',
      { type: 'NodePort', ports: [port(53), port(53, { protocol: 'UDP', nodePort: 30053 })] },
      '30053@0+1',
    ],
    [
      'unless they ask for two',
      { type: 'NodePort', ports: [port(53, { nodePort: 30001 }), port(53, { nodePort: 30002, protocol: 'UDP' })] },
      '30001@0 30002@1',
    ],
    [
      'one node port for two numbers is asked for twice',
      { type: 'NodePort', ports: [port(80, { nodePort: 30080 }), port(81, { nodePort: 30080 })] },
      '30080@0 30080@1',
    ],
    [
      'LoadBalancer without node ports: only what is asked for',
      { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports: [port(80), port(81, { nodePort: 30081 })] },
      '30081@1',
    ],
    ['LoadBalancer for local traffic: a port for health checks', LOCAL, 'next@0 next@healthCheck'],
    ['which may be asked for', { ...LOCAL, healthCheckNodePort: 31000 }, 'next@0 31000@healthCheck'],
    ['NodePort for local traffic: none', { type: 'NodePort', externalTrafficPolicy: 'Local' }, 'next@0'],
    ['ClusterIP: none, whatever it says', { ports: [port(80, { nodePort: 30080 })] }, ''],
  ])('%s', (_what, fields, expected) => {
    expect(wanted(fields, undefined, IPV4)).toBe(['IPv4@0', expected].join(' ').trim());
  });
});

describe('a Service that is changed', () => {
  const one = { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' };
  const two = {
    clusterIP: '10.0.0.5',
    clusterIPs: ['10.0.0.5', 'fd00::5'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'RequireDualStack',
  };
  const exposed = { ...one, type: 'NodePort', ports: [port(80, { nodePort: 30080 })] };
  const balanced = { ...one, ...LOCAL, ports: [port(80, { nodePort: 30080 })], healthCheckNodePort: 31000 };
  const outside = { type: 'ExternalName', ports: [] };

  test.each<[string, SpecFields, SpecFields, readonly IPFamily[], string]>([
    ['nothing else is nothing', one, one, DUAL, ''],
    ['sent anew without its address it keeps it', {}, one, DUAL, ''],
    ['and without its node port', { type: 'NodePort', ports: [port(80)] }, exposed, DUAL, ''],
    ['by the name of the port', { type: 'NodePort', ports: [port(81), { ...port(80) }] }, exposed, DUAL, 'next@0'],
    [
      'but not twice',
      { ...one, type: 'NodePort', ports: [port(80), port(81, { nodePort: 30080 })] },
      exposed,
      DUAL,
      'next@0',
    ],
    [
      'another address is for the registry to refuse',
      { clusterIP: '10.0.0.6', clusterIPs: ['10.0.0.6'] },
      one,
      IPV4,
      '',
    ],
    ['from ExternalName: all is new', { type: 'NodePort' }, outside, IPV4, 'IPv4@0 next@0'],
    ['to ExternalName: nothing', { ...one, type: 'ExternalName' }, one, IPV4, ''],
    ['to NodePort: a port', { ...one, type: 'NodePort' }, one, IPV4, 'next@0'],
    [
      'to NodePort: TCP and UDP get one each',
      { ...one, type: 'NodePort', ports: [port(53), port(53, { protocol: 'UDP', name: 'u' })] },
      one,
      IPV4,
      'next@0 next@1',
    ],
    ['another node port', { ...exposed, ports: [port(80, { nodePort: 30081 })] }, exposed, IPV4, '30081@0'],
    [
      'one node port under two protocols',
      { ...exposed, ports: [port(80, { nodePort: 30081 }), port(80, { nodePort: 30081, protocol: 'UDP' })] },
      exposed,
      IPV4,
      '30081@0',
    ],
    [
      'one node port twice is for the registry to refuse',
      { ...exposed, ports: [port(80, { nodePort: 30081 }), port(81, { nodePort: 30081 })] },
      exposed,
      IPV4,
      '',
    ],
    [
      'to local traffic: a port for health checks',
      { ...balanced, healthCheckNodePort: 0 },
      { ...balanced, externalTrafficPolicy: 'Cluster' },
      IPV4,
      'next@healthCheck',
    ],
    ['local traffic as before', { ...balanced, healthCheckNodePort: 0 }, balanced, IPV4, ''],
    ['two stacks are required now', { ...one, ipFamilyPolicy: 'RequireDualStack' }, one, DUAL, 'IPv6@1'],
    [
      'with an address of its own',
      { ...one, ipFamilyPolicy: 'PreferDualStack', clusterIPs: ['10.0.0.5', 'fd00::9'] },
      one,
      DUAL,
      'fd00::9@1',
    ],
    ['sent anew with the policy alone', { ipFamilyPolicy: 'RequireDualStack' }, one, DUAL, 'IPv6@1'],
    ['back to one stack: nothing', { ...two, ipFamilyPolicy: 'SingleStack' }, two, DUAL, ''],
    [
      'one that prefers two and has one stays so',
      { ...one, ipFamilyPolicy: 'PreferDualStack' },
      { ...one, ipFamilyPolicy: 'PreferDualStack' },
      DUAL,
      '',
    ],
    ['one that was stored before there were families', { type: 'NodePort' }, { clusterIP: '10.0.0.5' }, DUAL, 'next@0'],
    ['a headless one stays so', { type: 'ClusterIP' }, { clusterIP: 'None', clusterIPs: ['None'] }, DUAL, ''],
    [
      'fewer addresses under two stacks are for the registry to refuse',
      { ...two, clusterIPs: ['10.0.0.5'], type: 'NodePort' },
      two,
      DUAL,
      '',
    ],
  ])('%s', (_what, fields, old, configured, expected) => {
    expect(wanted(fields, old, configured)).toBe(expected);
  });

  test('the new clusterIPs have empty places for the addresses to allocate', () => {
    const { clusterIPs } = planOf(specOf({ ipFamilyPolicy: 'RequireDualStack' }), specOf(one), DUAL);
    expect(clusterIPs).toEqual(['10.0.0.5', '']);
  });
});

test('a plan is empty if the Service needs nothing', () => {
  expect(isEmpty(planOf(specOf({ clusterIP: 'None' }), undefined, IPV4))).toBe(true);
  expect(isEmpty(planOf(specOf({}), undefined, IPV4))).toBe(false);
});
