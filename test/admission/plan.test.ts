import { describe, expect, test } from '@jest/globals';
import { planOf } from '../../lib/admission/plan.ts';
import { serviceShape } from '../../lib/admission/service.ts';
import type { IPFamily } from '../../lib/allocator/ip-address.ts';
import { aReview, type ServiceFields } from '../support/admission-review.ts';

const IPV4: readonly IPFamily[] = ['IPv4'];
const DUAL: readonly IPFamily[] = ['IPv4', 'IPv6'];
const SIX_FIRST: readonly IPFamily[] = ['IPv6', 'IPv4'];

function specOf(fields: ServiceFields) {
  return serviceShape.parse(aReview({ spec: fields }).request.object).spec;
}

/**
 * Returns a plan as text: the families or addresses to allocate, then the node ports. `next@0` is any node port for the first
 * port, `30080@1+2` is the node port 30080 for the second and third port.
 */
function wanted(fields: ServiceFields, old: ServiceFields | undefined, configured: readonly IPFamily[]): string {
  const plan = planOf(specOf(fields), old && specOf(old), configured);
  const addresses = plan.addresses.map(({ family, value, index }) => `${value || family}@${index}`);
  const ports = plan.ports.map(({ value, at }) => `${value || 'next'}@${at.join('+')}`);
  return [...addresses, ...ports].join(' ');
}

const port = (number: number, fields: { protocol?: string; nodePort?: number; name?: string } = {}) => ({
  name: `p${number}${fields.protocol === undefined ? '' : '-udp'}`,
  protocol: 'TCP',
  port: number,
  ...fields,
});
const udp = (number: number, fields = {}) => port(number, { protocol: 'UDP', ...fields });
const nodePorts = (...ports: readonly object[]) => ({ type: 'NodePort', ports });
const balancer = (fields: ServiceFields) => ({ type: 'LoadBalancer', ...fields });
const LOCAL = balancer({ externalTrafficPolicy: 'Local' });
const EXTERNAL_NAME = { type: 'ExternalName', ports: [] };
const SINGLE = { ipFamilyPolicy: 'SingleStack' };
const PREFER = { ipFamilyPolicy: 'PreferDualStack' };
const REQUIRE = { ipFamilyPolicy: 'RequireDualStack' };
const ips = (...clusterIPs: readonly string[]) => ({ clusterIP: clusterIPs[0], clusterIPs });
const HEADLESS = ips('None');
const AT_30081 = { nodePort: 30081 };
const NAMING_30081 = { type: 'ExternalName', ports: [port(80), port(81, AT_30081)] };

describe('a new Service', () => {
  test.each<[string, ServiceFields, readonly IPFamily[], string]>([
    ['gets an address of the primary family', {}, IPV4, 'IPv4@0'],
    ['gets an IPv6 address if IPv6 is the primary family', {}, SIX_FIRST, 'IPv6@0'],
    ['gets an address of the family that it requests', { ipFamilies: ['IPv6'] }, DUAL, 'IPv6@0'],
    ['gets its first address from its first family', { ...PREFER, ipFamilies: ['IPv6'] }, DUAL, 'IPv6@0 IPv4@1'],
    ['gets the address that it requests', { clusterIP: '10.0.0.5' }, IPV4, '10.0.0.5@0'],
    ['that is headless gets nothing', HEADLESS, DUAL, ''],
    ['of type ExternalName gets only the node ports that it requests', NAMING_30081, DUAL, '30081@1'],
  ])('a new Service %s', (_what, fields, configured, expected) => {
    expect(wanted(fields, undefined, configured)).toBe(expected);
  });

  test.each<[string, ServiceFields]>([
    ['the policy RequireDualStack in a single-stack cluster', REQUIRE],
    ['a family that the cluster does not have', { ipFamilies: ['IPv6'] }],
    ['an address of a family that the cluster does not have', { clusterIP: 'fd00::1' }],
    ['two addresses without a dual-stack policy', ips('10.0.0.1', 'fd00::1')],
    ['two addresses of one family', { ...PREFER, ...ips('10.0.0.1', '10.0.0.2') }],
    ['a clusterIP that is not in clusterIPs', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] }],
    ['clusterIPs without clusterIP', { clusterIPs: ['10.0.0.2'] }],
    ['both None and an address in clusterIPs', { ...PREFER, ...ips('10.0.0.1', 'None') }],
    ['an address of a family that is not in its ipFamilies', { clusterIP: '10.0.0.1', ipFamilies: ['IPv6'] }],
    ['a family twice', { ...PREFER, ipFamilies: ['IPv4', 'IPv4'] }],
    ['an invalid ipFamilyPolicy', { ipFamilyPolicy: 'Triple' }],
    ['no ports', { ports: [] }],
    ['a port above 65535', { ports: [port(65_536)] }],
    ['a port twice', { ports: [port(80, { name: 'a' }), port(80, { name: 'b' })] }],
    ['an invalid protocol', { ports: [port(80, { protocol: 'ICMP' })] }],
    ['two ports, one without a name', { ports: [port(80), { port: 81 }] }],
    ['two ports with the same name', { ports: [port(80, { name: 'a' }), port(81, { name: 'a' })] }],
    ['a port name that is not a DNS label', { ports: [port(80, { name: 'A_B' })] }],
  ])('nothing is planned for a Service with %s, because the API server refuses it', (_what, fields) => {
    expect(wanted({ ...fields, type: 'NodePort' }, undefined, IPV4)).toBe('');
  });

  const [UNEXPOSED, EXPOSED] = [port(80), port(81, { nodePort: 30081 })];
  test.each<[string, ServiceFields, string]>([
    ['of type NodePort gets a node port for each port', nodePorts(port(80), port(443)), 'next@0 next@1'],
    ['gets one node port for ports with the same number', nodePorts(port(53), udp(53)), 'next@0+1'],
    ['gets the node port that one of its protocols requests', nodePorts(port(81), udp(81, AT_30081)), '30081@0+1'],
    [
      'gets two node ports for ports with the same number if they request two',
      nodePorts(port(53, { nodePort: 30001 }), udp(53, { nodePort: 30002 })),
      '30001@0 30002@1',
    ],
    ['requests a node port twice if two of its ports do', nodePorts(port(80, AT_30081), EXPOSED), '30081@0 30081@1'],
    [
      'of type LoadBalancer with allocateLoadBalancerNodePorts: false gets only the node ports that it requests',
      balancer({ allocateLoadBalancerNodePorts: false, ports: [UNEXPOSED, EXPOSED] }),
      '30081@1',
    ],
    ['of type LoadBalancer with the traffic policy Local gets a health check port', LOCAL, 'next@0 next@healthCheck'],
    ['gets its requested health check port', { ...LOCAL, healthCheckNodePort: 31000 }, 'next@0 31000@healthCheck'],
    ['of type NodePort gets no health check port', { ...LOCAL, type: 'NodePort' }, 'next@0'],
    ['of type ClusterIP gets no node port, even if it requests one', { ports: [EXPOSED] }, ''],
  ])('a new Service %s', (_what, fields, expected) => {
    expect(wanted(fields, undefined, IPV4)).toBe(['IPv4@0', expected].join(' ').trim());
  });
});

describe('a Service that is changed', () => {
  const one = { ...SINGLE, ...ips('10.0.0.5'), ipFamilies: ['IPv4'] };
  const two = { ...REQUIRE, ...ips('10.0.0.5', 'fd00::5'), ipFamilies: ['IPv4', 'IPv6'] };
  const exposed = { ...one, ...nodePorts(port(80, { nodePort: 30080 })) };
  const balanced = { ...one, ...LOCAL, ports: [port(80, { nodePort: 30080 })], healthCheckNodePort: 31000 };
  const refused = 'because the API server refuses it';
  const ofProtocols = nodePorts(port(80, AT_30081), udp(80, AT_30081));
  const ofNumbers = nodePorts(port(80, AT_30081), port(81, AT_30081));

  test.each<[string, ServiceFields, ServiceFields, string]>([
    ['with the same spec needs nothing', one, one, ''],
    ['keeps its address if the update omits it', {}, one, ''],
    ['keeps its node port if the update omits it', nodePorts(port(80)), exposed, ''],
    ['keeps the node port of a port whose name is unchanged', nodePorts(port(81), port(80)), exposed, 'next@0'],
    [`with another address needs nothing, ${refused}`, ips('10.0.0.6'), one, ''],
    ['that was an ExternalName gets an address and a node port', { type: 'NodePort' }, EXTERNAL_NAME, 'IPv4@0 next@0'],
    ['that becomes an ExternalName gets only the node ports that it requests', NAMING_30081, exposed, '30081@1'],
    ['that was an ExternalName keeps its port', { ...NAMING_30081, type: 'NodePort' }, NAMING_30081, 'IPv4@0 next@0'],
    ['that becomes a NodePort gets a node port', { ...one, type: 'NodePort' }, one, 'next@0'],
    ['that becomes a NodePort gets two with UDP', { ...one, ...nodePorts(port(53), udp(53)) }, one, 'next@0 next@1'],
    ['gets another node port that it requests', { ...one, ...nodePorts(port(80, AT_30081)) }, exposed, '30081@0'],
    ['gets one node port that two protocols request', { ...one, ...ofProtocols }, exposed, '30081@0'],
    [`with one node port for two port numbers needs nothing, ${refused}`, { ...one, ...ofNumbers }, exposed, ''],
    [
      'with the new traffic policy Local gets a health check port',
      { ...balanced, healthCheckNodePort: 0 },
      { ...balanced, externalTrafficPolicy: 'Cluster' },
      'next@healthCheck',
    ],
    ['keeps its health check port', { ...balanced, healthCheckNodePort: 0 }, balanced, ''],
    ['that now requires dual-stack gets a second address', { ...one, ...REQUIRE }, one, 'IPv6@1'],
    ['gets its requested second address', { ...one, ...PREFER, ...ips('10.0.0.5', 'fd00::9') }, one, 'fd00::9@1'],
    ['keeps its first address if the update contains only the policy', REQUIRE, one, 'IPv6@1'],
    ['that returns to single-stack needs nothing', { ...two, ...SINGLE }, two, ''],
    ['that already prefers dual-stack gets no second address', { ...one, ...PREFER }, { ...one, ...PREFER }, ''],
    ['that was stored without families gets a node port', { type: 'NodePort' }, { clusterIP: '10.0.0.5' }, 'next@0'],
    ['that is headless stays headless', { type: 'ClusterIP' }, HEADLESS, ''],
    [`that drops an address needs nothing, ${refused}`, { ...two, ...ips('10.0.0.5'), type: 'NodePort' }, two, ''],
  ])('a changed Service %s', (_what, fields, old, expected) => {
    expect(wanted(fields, old, DUAL)).toBe(expected);
  });

  test('the new clusterIPs contain an empty string for each address to allocate', () => {
    const { clusterIPs } = planOf(specOf(REQUIRE), specOf(one), DUAL);
    expect(clusterIPs).toEqual(['10.0.0.5', '']);
  });
});
