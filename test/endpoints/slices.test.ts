import { describe, expect, test } from '@jest/globals';
import {
  type EndpointSliceObject,
  type EndpointsObject,
  MANAGED_BY_LABEL,
  sameJson,
  samePort,
} from '../../lib/cluster/published-objects.ts';
import { sliceFromEndpoints, sliceWrites } from '../../lib/endpoints/slices.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';

test('the slice for Endpoints contains the target, node and readiness of each address, and lists ready addresses first', () => {
  const targetRef = { kind: 'Pod', name: 'p' };
  const addresses = [{ ip: '2.2.2.2', nodeName: 'n', targetRef }];
  const subsets = [{ notReadyAddresses: [{ ip: '1.1.1.1' }], addresses, ports: [HTTPS] }];
  expect(sliceFromEndpoints({ ...anEndpoints([]), subsets }).endpoints).toEqual([
    { addresses: ['2.2.2.2'], conditions: { ready: true }, nodeName: 'n', targetRef },
    { addresses: ['1.1.1.1'], conditions: { ready: false } },
  ]);
});

test('the slice of Endpoints contains only the name, protocol and number of a port', () => {
  const endpoints = anEndpoints(['1.2.3.4'], [{ port: 8080, appProtocol: 'http' }]);
  expect(sliceFromEndpoints(endpoints).ports).toEqual([{ name: '', port: 8080, protocol: 'TCP' }]);
});

describe('sliceWrites', () => {
  test('a missing slice is created in the namespace default even if the Endpoints have no address', () => {
    const bare: EndpointsObject = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'kubernetes' } };
    const created = { verb: 'create', object: { ...aSlice([]), ports: [] } };
    expect(sliceWrites(sliceFromEndpoints(bare), undefined)).toEqual([created]);
  });

  const desired = aSlice(['1.2.3.4']);
  const found = (slice: EndpointSliceObject): EndpointSliceObject => ({
    ...slice,
    metadata: { ...slice.metadata, uid: 'u', resourceVersion: '7', annotations: { mine: 'kept' } },
  });

  test('the update of a slice corrects its endpoints, and keeps the fields that other writers set', () => {
    const current = found({ ...desired, endpoints: [{ addresses: ['1.2.3.4'], conditions: { ready: false } }] });
    const object = { ...current, endpoints: desired.endpoints };
    expect(sliceWrites(desired, current)).toEqual([{ verb: 'update', object }]);
  });

  test.each([
    { name: 'no labels', labels: undefined, prune: false, does: 'replaces' },
    { name: 'another manager', labels: { [MANAGED_BY_LABEL]: 'x' }, prune: false, does: 'keeps' },
    { name: 'another manager, if prune is set', labels: { [MANAGED_BY_LABEL]: 'x' }, prune: true, does: 'replaces' },
  ])('sliceWrites $does a slice that has another address type and $name', (given) => {
    const { labels: _, ...metadata } = desired.metadata;
    const withLabels = { ...metadata, ...(given.labels && { labels: given.labels }) };
    const object = found({ ...desired, addressType: 'IPv6', metadata: withLabels });
    const verbs = sliceWrites(desired, object, given.prune).map(({ verb }) => verb);
    expect(verbs).toEqual(given.does === 'replaces' ? ['replace', 'create'] : []);
  });
});

test.each<[unknown, unknown, boolean]>([
  [{ a: 1, b: [{ c: 'x' }] }, { b: [{ c: 'x' }], a: 1 }, true],
  [{ a: null }, {}, true],
  [{ a: [] }, { a: null }, true],
  [undefined, [], true],
  [{ a: 1 }, { a: 2 }, false],
  [{ a: 1 }, { a: 1, b: 1 }, false],
  [[1], [1, 2], false],
  ['', undefined, false],
  [0, null, false],
])('sameJson compares %j and %j as the API does: %s', (one, other, same) => {
  expect([sameJson(one, other), sameJson(other, one)]).toEqual([same, same]);
});

test('samePort treats an absent name of a port like an empty name', () => {
  expect(samePort({ port: 1 }, { name: '', port: 1 })).toBe(true);
});
