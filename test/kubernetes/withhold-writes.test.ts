import { expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { withholdWrites } from '../../lib/kubernetes/withhold-writes.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { memoryCluster } from '../support/memory-cluster.ts';

const stored = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default', uid: 'u', resourceVersion: '101', labels: { a: '1', b: '2' } },
};
const ref = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;

/** Returns a Kubernetes client that withholds writes to a cluster with one object. */
function withholding(read: KubernetesObject = stored) {
  const reported: string[] = [];
  const cluster = memoryCluster([read]);
  afterThisTest(() => expect(cluster.writes).toEqual([]));
  return { port: withholdWrites(cluster.port, (description) => reported.push(description)), reported };
}

const endpoints = anEndpoints(['10.0.0.1', '10.0.0.2']);
const slice = { ...aSlice(['fd00::1'], [{ port: 6443 }, { port: 8443 }]), addressType: 'IPv6' };

test('withholdWrites returns the object that a create or update would store', async () => {
  const { port } = withholding();
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
  await expect(port.create(namespace)).resolves.toEqual({ outcome: 'withheld', object: namespace });
  await expect(port.update(stored)).resolves.toEqual({ outcome: 'withheld', object: stored });
  await expect(port.delete(stored)).resolves.toBe('withheld');
  await expect(port.mergePatch(ref, {})).resolves.toEqual({ outcome: 'withheld' });
});

test('withholdWrites reports each field that a create, patch or delete would change', async () => {
  const { port, reported } = withholding();
  const ipAddress = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress' };
  const spec = { parentRef: { resource: 'services', name: 'shop' } };
  const address = { ...ipAddress, metadata: { name: '10.0.0.9', labels: { family: 'IPv4' } }, spec };
  await port.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
  await port.create(address);
  await port.mergePatch(ref, {});
  await port.get(ref);
  await port.mergePatch(ref, { metadata: { uid: 'u', resourceVersion: '7', labels: { a: '2', c: '3' } } });
  await port.delete({ ...stored, metadata: { name: 'kubernetes', namespace: 'default' } });
  await port.delete(slice);
  expect(reported).toEqual([
    'create Namespace kube-system',
    'create IPAddress 10.0.0.9: metadata.labels.family + "IPv4"; spec.parentRef.resource + "services"; spec.parentRef.name + "shop"',
    'patch Service default/kubernetes',
    'patch Service default/kubernetes: metadata.labels.a "1" -> "2"; metadata.labels.c + "3"',
    'delete Service default/kubernetes: metadata.labels.a - "1"; metadata.labels.b - "2"',
    'delete EndpointSlice default/kubernetes with fd00::1 :6443 :8443',
  ]);
});

test.each([
  { object: endpoints, published: 'Endpoints default/kubernetes with 10.0.0.1, 10.0.0.2 :6443' },
  { object: { ...endpoints, subsets: [] }, published: 'Endpoints default/kubernetes with no address' },
  { object: { ...slice, endpoints: null, ports: null }, published: 'EndpointSlice default/kubernetes with no address' },
])('withholdWrites reports which addresses a create would publish: $published', async ({ object, published }) => {
  const { port, reported } = withholding();
  await port.create(object);
  expect(reported).toEqual([`create ${published}`]);
});

async function difference(before: object, after: object): Promise<string> {
  const { port, reported } = withholding({ ...stored, ...before });
  await port.get(ref);
  await port.update({ ...stored, ...after });
  return reported.join().replace(/^update Service default\/kubernetes(: )?/, '');
}

const relabelled = { metadata: { ...stored.metadata, resourceVersion: '8', labels: { b: '3' } } };
const labels = 'metadata.labels.a - "1"; metadata.labels.b "2" -> "3"';

test.each([
  ['changed labels, but not the resourceVersion', {}, relabelled, labels],
  ['each field of an object that the update removes', { spec: { a: { b: 1 } } }, {}, 'spec.a.b - 1'],
  ['changed and new items of a list', { a: [{ b: 1 }] }, { a: [{ b: 2 }, { b: 3 }] }, 'a[0].b 1 -> 2; a[1].b + 3'],
  ['a changed order', { list: [1, 2] }, { list: [2, 1] }, 'list[0] 1 -> 2; list[1] 2 -> 1'],
  ['no field that is equal for the API', { subsets: null, a: { x: 1, y: 2 } }, { subsets: [], a: { y: 2, x: 1 } }, ''],
  ['no field of the status', { status: { loadBalancer: {} } }, { status: {} }, ''],
])('the report of an update contains %s', async (_, before, after, text) => {
  expect(await difference(before, after)).toBe(text);
});

test('the report of an update contains a limited number of fields, cuts off long values, and prints a deeply nested object as one value', async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${n}`, 'x'.repeat(200)]));
  expect(await difference({ spec: {} }, { spec: many })).toMatch(/^spec\.f0 \+ "x{79}…; .*; and 12 more$/);
  const deep = (depth: number): object => (depth === 0 ? { end: Math.PI } : { down: deep(depth - 1) });
  expect(await difference({}, { a: deep(50) })).toMatch(/^a(\.down){7} \+ /);
  expect(await difference({ a: deep(50) }, { a: deep(51) })).toMatch(/^a(\.down){7} .* -> /);
});
