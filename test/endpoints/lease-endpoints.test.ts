import { describe, expect, test } from '@jest/globals';
import { type EndpointsObservation, leaseEndpoints } from '../../lib/endpoints/reconcilers.ts';
import { anEndpoints, HTTPS } from '../support/an-endpoints.ts';

function decide(given: Partial<EndpointsObservation>) {
  const current = anEndpoints(['1.2.3.4']);
  return leaseEndpoints({ current, live: ['1.2.3.4'], ports: [HTTPS], reconcilePorts: true, stopped: false, ...given });
}

describe('the lease reconciler', () => {
  const four = ['1.2.3.4', '4.3.2.1', '4.3.2.2', '4.3.2.3'];

  test('the lease reconciler removes the first and the last address when their leases expired', () => {
    const decision = decide({ current: anEndpoints(['1.2.3.4', ...four.slice(1), '4.3.2.4']), live: four.slice(1) });
    expect(decision).toEqual({ outcome: 'update', endpoints: anEndpoints(four.slice(1)) });
  });

  test('the lease reconciler ignores the order of addresses', () => {
    const current = anEndpoints(four.toReversed());
    expect(decide({ current, live: four })).toEqual({ outcome: 'keep', endpoints: current });
  });

  test('corrects a duplicate address', () => {
    const decision = decide({ current: anEndpoints(['1.2.3.4', '1.2.3.4']), live: ['1.2.3.4', '4.3.2.1'] });
    expect(decision).toMatchObject({ outcome: 'update', endpoints: anEndpoints(['1.2.3.4', '4.3.2.1']) });
  });

  test.each([
    { name: 'number', port: { ...HTTPS, port: 8080 } },
    { name: 'protocol', port: { ...HTTPS, protocol: 'UDP' } },
    { name: 'name', port: { ...HTTPS, name: 'foo' } },
    { name: 'application protocol', port: { ...HTTPS, appProtocol: 'http' } },
  ])('corrects a port with another $name', ({ port }) => {
    const decision = decide({ current: anEndpoints(['1.2.3.4'], [port]) });
    expect(decision).toEqual({ outcome: 'update', endpoints: anEndpoints(['1.2.3.4']) });
  });

  test('the lease reconciler creates Endpoints with the right ports even when ports are not reconciled', () => {
    const decision = decide({ current: undefined, reconcilePorts: false });
    expect(decision).toEqual({ outcome: 'create', endpoints: anEndpoints(['1.2.3.4']) });
  });

  test('the lease reconciler keeps labels, annotations and all other fields of the object', () => {
    const { metadata, ...rest } = anEndpoints(['9.9.9.9']);
    const labels = { mine: 'kept' };
    const current = {
      ...rest,
      somethingNew: 1,
      metadata: { ...metadata, labels, annotations: { a: 'b' }, resourceVersion: '7' },
    };
    expect(decide({ current })).toEqual({
      outcome: 'update',
      endpoints: {
        ...current,
        subsets: anEndpoints(['1.2.3.4']).subsets,
        metadata: { ...current.metadata, labels: { ...labels, 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
      },
    });
  });

  test('the lease reconciler refuses to publish no address', () => {
    expect(decide({ live: [] })).toEqual({ outcome: 'refused' });
    expect(decide({ live: [], current: undefined })).toEqual({ outcome: 'refused' });
  });
});
