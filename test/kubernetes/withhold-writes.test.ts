import { describe, expect, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { withholdWrites } from '../../lib/kubernetes/withhold-writes.ts';

const stored = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default', uid: 'u', resourceVersion: '7', labels: { a: '1', b: '2' } },
};
const ref = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;

/** Reads answer from one stored object; a write fails the test. */
function withholding() {
  const reported: string[] = [];
  const never = () => Promise.reject(new Error('nothing may be written'));
  const claim = { name: 'kubernetes' };
  const port = {
    get: ({ name }: { name: string }) => Promise.resolve(name === 'kubernetes' ? stored : undefined),
    list: () => Promise.resolve([stored]),
    services: async function* () {
      yield claim;
    },
    create: never,
    update: never,
    mergePatch: never,
    delete: never,
  } as unknown as ClusterPort;
  return { port: withholdWrites(port, (description) => reported.push(description)), reported };
}

const endpoints = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'kubernetes', namespace: 'default' },
  subsets: [{ addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }], ports: [{ name: 'https', port: 6443 }] }],
};
const slice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'kubernetes', namespace: 'default' },
  addressType: 'IPv6',
  endpoints: [{ addresses: ['fd00::1'] }],
  ports: [{ port: 6443 }, { port: 8443 }],
};

describe('a port that withholds writes', () => {
  test('a read is passed through', async () => {
    const { port, reported } = withholding();
    await expect(port.get(ref)).resolves.toBe(stored);
    await expect(port.list('Service', 'default')).resolves.toEqual([stored]);
    const names: string[] = [];
    for await (const { name } of port.services()) names.push(name);
    expect([names, reported]).toEqual([['kubernetes'], []]);
  });

  test('a port that withholds writes reports each write, and answers with the object as it would be', async () => {
    const { port, reported } = withholding();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
    await expect(port.create(namespace)).resolves.toEqual({ outcome: 'withheld', object: namespace });
    await expect(port.update(stored)).resolves.toEqual({ outcome: 'withheld', object: stored });
    await expect(port.delete(stored)).resolves.toBe('withheld');
    await expect(port.mergePatch(ref, {})).resolves.toEqual({ outcome: 'withheld' });
    expect(reported).toEqual([
      'create Namespace kube-system',
      'update Service default/kubernetes',
      'delete Service default/kubernetes: metadata.labels.a - "1"; metadata.labels.b - "2"',
      'patch Service default/kubernetes',
    ]);
  });

  test('a port that withholds writes reports each field of an object that it would create, patch or delete', async () => {
    const { port, reported } = withholding();
    const ipAddress = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress' };
    const spec = { parentRef: { resource: 'services', name: 'shop' } };
    const address = { ...ipAddress, metadata: { name: '10.0.0.9', labels: { family: 'IPv4' } }, spec };
    await port.create(address);
    await port.get(ref);
    await port.mergePatch(ref, { metadata: { uid: 'u', resourceVersion: '7', labels: { a: '2', c: '3' } } });
    await port.delete({ ...stored, metadata: { name: 'kubernetes', namespace: 'default' } });
    await port.delete(slice);
    expect(reported).toEqual([
      'create IPAddress 10.0.0.9: metadata.labels.family + "IPv4"; spec.parentRef.resource + "services"; spec.parentRef.name + "shop"',
      'patch Service default/kubernetes: metadata.labels.a "1" -> "2"; metadata.labels.c + "3"',
      'delete Service default/kubernetes: metadata.labels.a - "1"; metadata.labels.b - "2"',
      'delete EndpointSlice default/kubernetes with fd00::1 :6443 :8443',
    ]);
  });

  test('a port that withholds writes reports which fields of what was read an update would change', async () => {
    const { port, reported } = withholding();
    await port.get(ref);
    await port.update({ ...stored, metadata: { ...stored.metadata, resourceVersion: '8', labels: { b: '3' } } });
    await port.update(stored);
    expect(reported).toEqual([
      'update Service default/kubernetes: metadata.labels.a - "1"; metadata.labels.b "2" -> "3"',
      'update Service default/kubernetes',
    ]);
  });

  test.each([
    { object: endpoints, published: 'Endpoints default/kubernetes with 10.0.0.1, 10.0.0.2 :6443' },
    { object: { ...endpoints, subsets: [] }, published: 'Endpoints default/kubernetes with no address' },
    { object: slice, published: 'EndpointSlice default/kubernetes with fd00::1 :6443 :8443' },
    {
      object: { ...slice, endpoints: null, ports: null },
      published: 'EndpointSlice default/kubernetes with no address',
    },
  ])(
    'a port that withholds writes names the addresses that it would publish: $published',
    async ({ object, published }) => {
      const { port, reported } = withholding();
      await port.create(object);
      expect(reported).toEqual([`create ${published}`]);
    },
  );
});
