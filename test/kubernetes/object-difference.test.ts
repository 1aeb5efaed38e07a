import { expect, test } from '@jest/globals';
import { objectDifference } from '../../lib/kubernetes/object-difference.ts';

const metadata = { name: 'kubernetes', resourceVersion: '1' };
const difference = (before: object, after: object) =>
  objectDifference({ metadata, ...before }, { metadata: { ...metadata, resourceVersion: '2' }, ...after });

const port = { name: 'https', port: 443, targetPort: 6443 };
const address = (ip: string) => ({ ip });

test.each([
  ['a field', { spec: { type: 'NodePort' } }, { spec: { type: 'ClusterIP' } }, 'spec.type "NodePort" -> "ClusterIP"'],
  ['a field that goes', { spec: { nodePort: 30443 } }, { spec: {} }, 'spec.nodePort - 30443'],
  ['a field that comes', { spec: {} }, { spec: { type: 'ClusterIP' } }, 'spec.type + "ClusterIP"'],
  [
    'each field of an object that comes',
    {},
    { spec: { type: 'ClusterIP', selector: { a: 'b' }, ports: [{ port: 1 }] } },
    'spec.type + "ClusterIP"; spec.selector.a + "b"; spec.ports + [{"port":1}]',
  ],
  ['each field of an object that goes', { spec: { a: { b: 1 } } }, {}, 'spec.a.b - 1'],
  [
    'one item of a list',
    { spec: { ports: [port] } },
    { spec: { ports: [{ ...port, targetPort: 8443 }] } },
    'spec.ports[0].targetPort 6443 -> 8443',
  ],
  [
    'items of a list',
    { addresses: ['10.0.0.1', '10.0.0.2'].map(address) },
    { addresses: ['10.0.0.2', '10.0.0.3', '10.0.0.4'].map(address) },
    'addresses - {"ip":"10.0.0.1"}; addresses + {"ip":"10.0.0.3"}; addresses + {"ip":"10.0.0.4"}',
  ],
  ['an order', { list: [1, 2] }, { list: [2, 1] }, 'list in another order'],
  ['nothing to the API', { subsets: null, a: { x: 1, y: 2 } }, { subsets: [], a: { y: 2, x: 1 } }, ''],
  ['nothing that is ours', { status: { loadBalancer: {} } }, { status: {} }, ''],
])('%s that differs is named with both values', (_, before, after, text) => {
  expect(difference(before, after)).toBe(text);
});

test('the report names the first of many fields, cuts long values, and shows a deep object as one value', () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${n}`, 'x'.repeat(200)]));
  const text = difference({ spec: {} }, { spec: many });
  expect(text).toMatch(/^spec\.f0 \+ "x{79}…; .*; and 12 more$/);
  const deep = (depth: number): object => (depth === 0 ? { end: Math.PI } : { down: deep(depth - 1) });
  expect(difference({}, { a: deep(100) })).toMatch(/^a(\.down){7} \+ /);
  expect(difference({ a: deep(100) }, { a: deep(101) })).toMatch(/^a(\.down){7} .* -> /);
});
