import { describe, expect, test } from '@jest/globals';
import { ensureSlice, sliceFromEndpoints } from '../../lib/endpoints/endpoint-slice.ts';
import type { EndpointSliceObject, EndpointsObject } from '../../lib/endpoints/objects.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';

describe('the slice of Endpoints', () => {
  test('carries the target and the node of an address, and readiness, ready ones first', () => {
    const targetRef = { kind: 'Pod', name: 'p' };
    const endpoints: EndpointsObject = {
      ...anEndpoints([]),
      subsets: [
        {
          notReadyAddresses: [{ ip: '1.1.1.1' }],
          addresses: [{ ip: '2.2.2.2', nodeName: 'n', targetRef }],
          ports: [HTTPS],
        },
      ],
    };
    expect(sliceFromEndpoints(endpoints).endpoints).toEqual([
      { addresses: ['2.2.2.2'], conditions: { ready: true }, nodeName: 'n', targetRef },
      { addresses: ['1.1.1.1'], conditions: { ready: false } },
    ]);
  });

  test('the slice of Endpoints contains only the name, protocol and number of a port', () => {
    const endpoints = anEndpoints(['1.2.3.4'], [{ port: 8080, appProtocol: 'http' }]);
    expect(sliceFromEndpoints(endpoints).ports).toEqual([{ name: '', port: 8080, protocol: 'TCP' }]);
  });

  test('the slice of Endpoints is an IPv6 slice if its only address is IPv6 and not ready', () => {
    const endpoints = { ...anEndpoints([]), subsets: [{ notReadyAddresses: [{ ip: 'fd00::1' }], ports: [HTTPS] }] };
    expect(sliceFromEndpoints(endpoints)).toMatchObject({
      addressType: 'IPv6',
      endpoints: [{ addresses: ['fd00::1'] }],
    });
  });

  test('the slice of Endpoints contains only the addresses and ports of the first subset', () => {
    const endpoints = anEndpoints(['1.2.3.4']);
    const second = { addresses: [{ ip: '5.6.7.8' }], ports: [HTTPS] };
    const slice = sliceFromEndpoints({ ...endpoints, subsets: [...(endpoints.subsets ?? []), second] });
    expect(slice).toEqual(aSlice(['1.2.3.4']));
  });
});

describe('ensuring the slice', () => {
  test('creates it in the namespace default, also without an address', () => {
    const bare: EndpointsObject = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'kubernetes' } };
    expect(ensureSlice(bare, undefined)).toEqual({ verb: 'create', object: { ...aSlice([]), ports: [] } });
  });

  const endpoints = anEndpoints(['1.2.3.4']);
  const found = (slice: EndpointSliceObject): EndpointSliceObject => ({
    ...slice,
    metadata: { ...slice.metadata, uid: 'u', resourceVersion: '7', annotations: { mine: 'kept' } },
  });

  test('writes nothing when endpoints, ports and labels are the same', () => {
    expect(ensureSlice(endpoints, found(aSlice(['1.2.3.4'])))).toBeUndefined();
  });

  test('treats an absent list as an empty one', () => {
    const { endpoints: _, ports: __, ...empty } = aSlice([]);
    expect(ensureSlice(anEndpoints([]), found(empty))).toBeUndefined();
  });

  test.each([
    { name: 'another address', slice: aSlice(['9.9.9.9']) },
    { name: 'one address too many', slice: aSlice(['1.2.3.4', '9.9.9.9']) },
    { name: 'another port', slice: aSlice(['1.2.3.4'], [{ ...HTTPS, port: 1 }]) },
    {
      name: 'an address that another writer marked as not ready',
      slice: { ...aSlice(['1.2.3.4']), endpoints: [{ addresses: ['1.2.3.4'], conditions: { ready: false } }] },
    },
    {
      name: 'a label of another writer',
      slice: { ...aSlice(['1.2.3.4']), metadata: { ...aSlice([]).metadata, labels: { other: 'x' } } },
    },
  ])('corrects $name on the object that was read', ({ slice }) => {
    const current = found(slice);
    const { endpoints: right, ports, metadata } = aSlice(['1.2.3.4']);
    expect(ensureSlice(endpoints, current)).toEqual({
      verb: 'update',
      object: { ...current, endpoints: right, ports, metadata: { ...current.metadata, labels: metadata.labels } },
    });
  });

  test.each([
    { name: 'our labels', labels: aSlice([]).metadata.labels ?? {} },
    { name: 'no labels', labels: undefined },
  ])('deletes a slice of another address type with $name as it was read, and creates it again', ({ labels }) => {
    const { labels: _, ...metadata } = aSlice([]).metadata;
    const withLabels = { ...metadata, ...(labels && { labels }) };
    const current = found({ ...aSlice(['1.2.3.4']), addressType: 'IPv6', metadata: withLabels });
    expect(ensureSlice(endpoints, current)).toEqual({
      verb: 'replace',
      object: current,
      replacement: aSlice(['1.2.3.4']),
    });
  });

  test('never deletes a slice with the label of another manager', () => {
    const labels = { 'endpointslice.kubernetes.io/managed-by': 'somebody' };
    const slice = { ...aSlice([]), addressType: 'IPv6' };
    expect(ensureSlice(endpoints, { ...slice, metadata: { ...slice.metadata, labels } })).toBeUndefined();
  });
});
