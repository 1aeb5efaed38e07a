import { describe, expect, test } from '@jest/globals';
import type { ServiceObject, ServicePort } from '../../lib/cluster/published-objects.ts';
import { endpointPorts, planService, serviceFindings } from '../../lib/endpoints/kubernetes-service.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec, type SpecFields } from '../support/a-cluster-spec.ts';
import { found } from '../support/found.ts';

const desiredService = (spec: ClusterSpec) => found(planService(spec, undefined)).object;

const HTTPS = { name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 };
const EXTRA = { name: 'extra', protocol: 'TCP', port: 1000, targetPort: 1010 } as const;

describe('the kubernetes Service', () => {
  test('a new kubernetes Service has the labels of upstream, one IP family, no session affinity, no selector, and the first address of the range', () => {
    const labels = { provider: 'kubernetes', component: 'apiserver' };
    const policies = { ipFamilyPolicy: 'SingleStack', sessionAffinity: 'None' };
    expect(desiredService(aClusterSpec())).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name: 'kubernetes', labels },
      spec: { ports: [HTTPS], clusterIP: '10.0.0.1', ...policies, type: 'ClusterIP' },
    });
  });

  const nodePort = { type: 'NodePort', ports: [{ ...HTTPS, nodePort: 30443 }] };
  test.each<[string, SpecFields, object]>([
    ['is of type NodePort if the spec sets a node port', { service: { nodePort: 30443 } }, nodePort],
    ['has the extra ports of the spec after its own', { service: { extraPorts: [EXTRA] } }, { ports: [HTTPS, EXTRA] }],
    ['has the first address of a range', { serviceClusterIPRanges: ['fd00:10::/108'] }, { clusterIP: 'fd00:10::1' }],
  ])('the kubernetes Service %s', (_, spec, fields) => {
    expect(desiredService(aClusterSpec(spec)).spec).toMatchObject(fields);
  });

  test('desiredService throws an error for a range that is not a CIDR', () => {
    expect(() => desiredService(aClusterSpec({ serviceClusterIPRanges: ['none'] }))).toThrow('"none" is not a CIDR');
  });

  test('the endpoints of the kubernetes Service have the port of the API servers and the extra ports', () => {
    const extra = { name: 'extra', protocol: 'UDP', port: 1000 } as const;
    const https = { name: 'https', port: 6443, protocol: 'TCP' };
    expect(endpointPorts(aClusterSpec({ endpoints: { extraPorts: [extra] } }))).toEqual([https, extra]);
  });
});

describe('correcting the kubernetes Service', () => {
  const spec = aClusterSpec({ service: { extraPorts: [EXTRA], reconcile: true } });
  const right: readonly ServicePort[] = [HTTPS, EXTRA];

  function found(ports: readonly ServicePort[], type = 'ClusterIP'): ServiceObject {
    return {
      metadata: { namespace: 'default', name: 'kubernetes', uid: 'u', resourceVersion: '7', labels: { mine: 'kept' } },
      spec: { type, clusterIP: '10.0.0.1', ports, sessionAffinity: 'None' },
    };
  }

  test.each([
    { name: 'one port too many', ports: [HTTPS, EXTRA, { ...EXTRA, name: 'third', port: 3 }] },
    { name: 'ports in another order', ports: [EXTRA, HTTPS] },
    { name: 'a target port by name', ports: [{ ...HTTPS, targetPort: 'https' }, EXTRA] },
    { name: 'a wrong protocol', ports: [{ ...HTTPS, protocol: 'UDP' }, EXTRA] },
    { name: 'an application protocol', ports: [{ ...HTTPS, appProtocol: 'http' }, EXTRA] },
    { name: 'a wrong type', ports: right, type: 'NodePort' },
  ])('a correction of the Service replaces $name, and keeps all other fields', ({ ports, type }) => {
    const current = found(ports, type);
    const object = { ...current, spec: { ...current.spec, type: 'ClusterIP', ports: right } };
    expect(planService(spec, current)).toEqual({ verb: 'update', object, fields: 'type and ports' });
  });

  /** Returns the Service in a cluster, with these fields in its spec. */
  const having = (fields: object): ServiceObject => {
    const current = found([HTTPS]);
    return { ...current, spec: { ...current.spec, ...fields } };
  };

  const ranges = ['10.0.0.0/24', 'fd00::/112'] as const;
  const policy = aClusterSpec({ serviceClusterIPRanges: ranges, service: { ipFamilyPolicy: 'PreferDualStack' } });
  const dualStack = (fields: object) => planService(policy, having(fields));

  test('a correction of a Service of type ExternalName contains the address of the Service, and not its externalName', () => {
    const current = found(right, 'ExternalName');
    const { clusterIP: _, ...fields } = current.spec;
    const broken = { ...current, spec: { ...fields, externalName: 'api.example.com' } };
    expect(planService(spec, broken)?.object.spec).toEqual({ ...found(right).spec, clusterIPs: ['10.0.0.1'] });
    const leftover = { ...current, spec: { ...current.spec, type: 'ClusterIP', externalName: 'api.example.com' } };
    expect(planService(spec, leftover)?.object.spec.externalName).toBeUndefined();
  });

  const PREFER = { ipFamilyPolicy: 'PreferDualStack' };
  const BOTH = { ipFamilies: ['IPv4', 'IPv6'] };
  test.each([
    ['the policy to a Service without a policy', {}, PREFER],
    ['IPv6 to a single-stack Service with the policy', { ...PREFER, ipFamilies: ['IPv4'] }, BOTH],
  ])('a spec with PreferDualStack adds %s, and does not change a dual-stack Service', (_, before, after) => {
    expect(dualStack(before)).toMatchObject({ verb: 'update', object: { spec: after } });
    expect(dualStack({ ...PREFER, ...BOTH })).toBeUndefined();
  });

  test.each([
    ['has a selector', { selector: { app: 'x' } }, 'kubectl -n default patch service kubernetes'],
    ['has internalTrafficPolicy: Local', { internalTrafficPolicy: 'Local' }, '"value":"Cluster"'],
    ['is headless', { clusterIP: 'None' }, 'kubectl -n default delete service kubernetes'],
    ['has 10.0.0.9 in place of 10.0.0.1', { clusterIP: '10.0.0.9' }, 'kubectl -n default delete service kubernetes'],
    ['is of type ExternalName', { type: 'ExternalName' }, 'service.reconcile: true'],
  ])('the finding about a Service that %s contains the resolution', (what, fields, remedy) => {
    const findings = serviceFindings(aClusterSpec(), having(fields));
    expect(findings).toMatchObject([{ type: 'serviceDiffers', message: expect.stringContaining(what) }]);
    expect(findings[0]?.message).toContain(remedy);
  });

  const accepted = [{}, { selector: {} }, { selector: null }, { clusterIP: '10.96.0.1' }, { type: 'LoadBalancer' }];
  test.each(accepted)('a Service with the fields %j is not reported', (fields) => {
    expect(serviceFindings(aClusterSpec(), having(fields))).toEqual([]);
  });

  test('no correction of the Service is necessary for a port whose protocol is omitted, because TCP is the default', () => {
    const ports = [{ name: 'https', port: 443, targetPort: 6443 }, EXTRA];
    expect(planService(spec, found(ports))).toBeUndefined();
  });
});
