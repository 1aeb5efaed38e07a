import { expect, test } from '@jest/globals';
import { addMaster, leaseEndpoints, removeMasters } from '../../lib/endpoints/reconcilers.ts';
import { anEndpoints, HTTPS } from '../support/an-endpoints.ts';

/* The golden cases compare both reconcilers with upstream. */

const RULES = { ports: [HTTPS], reconcilePorts: true };

test('the lease reconciler keeps labels, annotations and all other fields of the object', () => {
  const { metadata, ...rest } = anEndpoints(['9.9.9.9']);
  const labels = { mine: 'kept' };
  const current = {
    ...rest,
    somethingNew: 1,
    metadata: { ...metadata, labels, annotations: { a: 'b' }, resourceVersion: '7' },
  };
  expect(leaseEndpoints(current, ['1.2.3.4'], RULES)).toEqual({
    ...current,
    subsets: anEndpoints(['1.2.3.4']).subsets,
    metadata: { ...current.metadata, labels: { ...labels, 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
  });
});

test('the master-count reconciler adds the skip-mirror label to otherwise correct Endpoints', () => {
  const { metadata, ...rest } = anEndpoints(['1.2.3.4']);
  const current = { ...rest, metadata: { namespace: 'default', name: 'kubernetes' } };
  expect(addMaster(current, '1.2.3.4', { masterCount: 4, ...RULES })).toEqual({ ...rest, metadata });
});

test('the master-count reconciler removes its own address if there are too many addresses', () => {
  const current = anEndpoints(['4.3.2.1', '4.3.2.2', '4.3.2.3', '4.3.2.4']);
  expect(addMaster(current, '4.3.2.25', { masterCount: 1, ...RULES })).toEqual(anEndpoints(['4.3.2.2']));
});

test('the master-count reconciler removes the last address, and changes nothing in Endpoints without subsets', () => {
  expect(removeMasters(anEndpoints(['1.2.3.4']), new Set(['1.2.3.4']))).toEqual(anEndpoints([]));
  expect(removeMasters(anEndpoints([]), new Set(['1.2.3.4']))).toBeUndefined();
});
