import { expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { addressLookUp } from '../../lib/dispatch/address-look-up.ts';
import type { FoundAddresses } from '../../lib/kubernetes/cluster-port.ts';
import type { SharedHostSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec, aHost } from '../support/a-cluster-spec.ts';
import { memoryCluster } from '../support/memory-cluster.ts';

const spec = aClusterSpec();
const kubeconfig = { secretsManager: 'management' };
const serviceRef = { namespace: 'tenants', name: 'prod', kubeconfig };
const fromService = aHost('service tenants/prod', { serviceRef });
const metadata = { namespace: 'tenants', name: 'prod', labels: { 'kubernetes.io/service-name': 'prod' } };

/** Looks up a source with these objects in the management cluster and these targets in the target group. */
function lookUp(
  source: SharedHostSpec,
  objects: readonly KubernetesObject[],
  targets: FoundAddresses = { addresses: [] },
  warn: (text: string) => void = never,
) {
  const deadline = new AbortController().signal;
  const sources: Parameters<typeof addressLookUp>[0] = {
    resolveHost: () => async (host) => (host === 'unknown.example' ? undefined : [`address of ${host}`]),
    healthyTargets: async () => targets,
    connect: async (wanted, options) => {
      if (warn !== never) options.warn('the token ends');
      expect(wanted).toMatchObject({ name: 'service tenants/prod', kubeconfig, apiServers: [] });
      return { kubernetes: memoryCluster(objects).port, probe: never, controlPlane: { id: '', confirm: never } };
    },
  };
  return addressLookUp(sources, spec, deadline, warn)(source, deadline);
}

const never = () => Promise.reject(new Error('is not asked'));

function service(type: string, ingress: readonly object[] = []): KubernetesObject {
  const object = { apiVersion: 'v1', kind: 'Service', metadata, spec: { type }, status: { loadBalancer: { ingress } } };
  return object;
}

function slice(...endpoints: readonly object[]): KubernetesObject {
  const object = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4', endpoints };
  return object;
}

test('the look-up of a host name returns the addresses from DNS', async () => {
  expect(await lookUp(aHost('api.example.com'), [])).toEqual({ addresses: ['address of api.example.com'] });
});

test('the addresses of a target group are those of its healthy targets, and the look-up fails if the group has no healthy target', async () => {
  const group = aHost('arn', { targetGroupArn: 'arn' });
  expect(await lookUp(group, [], { addresses: ['10.0.0.1'] })).toEqual({ addresses: ['10.0.0.1'] });
  await expect(lookUp(group, [])).rejects.toThrow('arn has no healthy target');
});

test('the look-up of a Service of type LoadBalancer returns the IP addresses of the load balancer, and the addresses to which the host names of the load balancer resolve', async () => {
  const objects = [service('LoadBalancer', [{ ip: '203.0.113.9' }, { hostname: 'lb.example' }, {}])];
  expect(await lookUp(fromService, objects)).toEqual({ addresses: ['203.0.113.9', 'address of lb.example'] });
});

const more = Array.from({ length: 40 }, (_, n) => ({ ip: `203.0.113.${n}` }));
test.each([
  ['a host name is not found', [{ hostname: 'unknown.example' }], 'unknown.example'],
  ['only one of two entries is found', [{ ip: '203.0.113.9' }, { hostname: 'unknown.example' }], 'unknown'],
  ['there are more entries than the limit', more, '8 more entries'],
])('if %s, the look-up of a Service names the load balancer entries without an address', async (_, ingress, unread) => {
  expect(await lookUp(fromService, [service('LoadBalancer', ingress)])).toMatchObject({
    unread: expect.stringContaining(unread),
  });
});

test('a warning about the kubeconfig of a serviceRef is logged with the name of the Service', async () => {
  const warned: string[] = [];
  const balancer = service('LoadBalancer', [{ ip: '203.0.113.9' }]);
  await lookUp(fromService, [balancer], undefined, (text) => warned.push(text));
  expect(warned).toEqual(['service tenants/prod: the token ends']);
});

test('the look-up of a Service without a load balancer returns the addresses of the ready endpoints', async () => {
  const endpoints = [
    { addresses: ['10.0.0.1'], conditions: { ready: true } },
    { addresses: ['10.0.0.2'], conditions: { ready: false } },
    { addresses: ['10.0.0.3'] },
    { addresses: null, conditions: null },
  ];
  expect(await lookUp(fromService, [service('ClusterIP'), slice(...endpoints)])).toEqual({
    addresses: ['10.0.0.1', '10.0.0.3'],
  });
});

test.each([
  ['does not exist', []],
  ['has no address yet', [service('LoadBalancer')]],
  ['has no address yet', [service('ClusterIP')]],
])('the look-up of the addresses of a Service fails while the Service %s', async (why, objects) => {
  const text = `Service tenants/prod of the management cluster ${why}`;
  await expect(lookUp(fromService, objects)).rejects.toMatchObject({ code: 'Unavailable', message: text });
});
