import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Handlers, startHandlers } from '../support/handlers.ts';
import { runningControlPlane } from '../support/running-control-plane.ts';

const IP_ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses';
const LABELS = {
  'ipaddress.kubernetes.io/ip-family': 'IPv4',
  'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
};

/** An API server whose own repair is off: what passes find stays until they correct it. */
const { etcd, apiserver } = runningControlPlane({ hooksOff: true });
let handlers: Handlers;

const service = (name: string, address: string) =>
  storedService('default', name, {
    type: 'ClusterIP',
    clusterIP: address,
    clusterIPs: [address],
    ports: [{ port: 80 }],
  });

const parent = (name: string, resource = 'services') => ({ group: '', resource, namespace: 'default', name });

function putIpAddress(name: string, parentRef: object, labels: object = LABELS): Promise<void> {
  const metadata = { name, uid: `uid-of-${name}`, creationTimestamp: '2026-01-01T00:00:00Z', labels };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata, spec: { parentRef } };
  return etcd.put(`/registry/ipaddresses/${name}`, object);
}

beforeAll(async () => {
  const cidr = (name: string, range: string) => ({ metadata: { name }, spec: { cidrs: [range] } });
  for (const [path, object] of [
    ['/api/v1/namespaces', { metadata: { name: 'default' } }],
    ['/apis/networking.k8s.io/v1/servicecidrs', cidr('kubernetes', '10.0.0.0/24')],
    ['/apis/networking.k8s.io/v1/servicecidrs', cidr('second', '10.5.0.0/24')],
  ] as const) {
    expect(await apiserver.request('POST', path, object)).toMatchObject({ status: 201 });
  }
  await putIpAddress('10.0.0.11', parent('good'));
  await putIpAddress('10.0.0.13', parent('gone'));
  await putIpAddress('10.0.0.14', parent('labels'), { ...LABELS, 'ipaddress.kubernetes.io/ip-family': 'IPv6' });
  await putIpAddress('10.5.0.15', parent('first'));
  await putIpAddress('10.0.0.16', parent('gone'));
  await putIpAddress('10.0.0.17', parent('good'));
  await putIpAddress('10.0.0.18', parent('x', 'gateways'));
  await etcd.putServices([
    service('good', '10.0.0.11'),
    service('missing', '10.0.0.12'),
    service('reference', '10.0.0.13'),
    service('labels', '10.0.0.14'),
    service('first', '10.5.0.15'),
    service('second', '10.5.0.15'),
    service('outside', '10.9.0.1'),
    service('invalid', '10.0.0.300'),
  ]);
  handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { allocator: 'apiserver', apiServers: [{ address: '10.9.8.7' }] },
  });
});

afterAll(() => handlers?.close());

async function parents(): Promise<Record<string, string>> {
  const { body } = await apiserver.request<{
    items: { metadata: { name: string }; spec: { parentRef: { name: string } } }[];
  }>('GET', IP_ADDRESSES);
  return Object.fromEntries(body.items.map(({ metadata, spec }) => [metadata.name, spec.parentRef.name]));
}

const STAYING = [
  'outOfRange: the ClusterIP [IPv4]: 10.9.0.1 for Service default/outside is not within any service CIDR; please recreate',
  'invalid: the ClusterIP 10.0.0.300 for Service default/invalid is not a valid IP; please recreate Service',
  'duplicate: the cluster IP [IPv4]:10.5.0.15 for service default/second was assigned to other services default/first; please recreate',
];

const CORRECTED = [
  'notRecorded: the ClusterIP [IPv4]: 10.0.0.12 for Service default/missing is not allocated; repairing',
  'notRecorded: the ClusterIP [IPv4]: 10.0.0.13 for Service default/reference has a wrong reference; repairing',
  'leakedRecord: IPAddress 10.0.0.13 appears to have leaked: cleaning up',
  'leakedRecord: IPAddress 10.0.0.16 appears to have leaked: cleaning up',
  'leakedRecord: the IPAddress: 10.0.0.17 for Service default/good has a wrong reference &v1.ParentReference{Group:"", Resource:"services", Namespace:"default", Name:"good"}; cleaning up',
  'leakedRecord: IPAddress 10.0.0.18 appears to have been modified, not referencing a Service &ParentReference{Group:,Resource:gateways,Namespace:default,Name:x,}: cleaning up',
];

describe('the IPAddresses of a real API server without its own repair', () => {
  test('are reported by a pass, which changes none of them', async () => {
    const before = await parents();
    const { findings, errors } = await eventually(async () => {
      const pass = await handlers.run('cluster-ip-repair');
      expect(pass.findings).toHaveLength(STAYING.length + CORRECTED.length);
      return pass;
    });
    expect(errors).toEqual([]);
    expect(findings.toSorted()).toEqual([...STAYING, ...CORRECTED].toSorted());
    expect(await parents()).toEqual(before);
  });

  test('are corrected by a pass with repair.ipAddresses, and the next pass finds only what a person must decide', async () => {
    await handlers.register({ repair: { ipAddresses: true } });
    const { errors, changes } = await handlers.run('cluster-ip-repair');
    expect(errors).toEqual([]);
    expect(changes).toEqual(
      expect.arrayContaining([
        'created IPAddress 10.0.0.12 for Service default/missing',
        'replaced IPAddress 10.0.0.13 for Service default/reference',
        'corrected the labels of IPAddress 10.0.0.14',
        'deleted IPAddress 10.0.0.16',
        'deleted IPAddress 10.0.0.17',
        'deleted IPAddress 10.0.0.18',
      ]),
    );
    expect(await parents()).toMatchObject({
      '10.0.0.11': 'good',
      '10.0.0.12': 'missing',
      '10.0.0.13': 'reference',
      '10.0.0.14': 'labels',
      '10.5.0.15': 'first',
    });
    expect((await handlers.run('cluster-ip-repair')).findings.toSorted()).toEqual(STAYING.toSorted());
  });
});
