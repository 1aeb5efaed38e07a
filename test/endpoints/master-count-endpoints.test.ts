import { describe, expect, test } from '@jest/globals';
import { addMaster, type MasterCountObservation, removeMasters } from '../../lib/endpoints/reconcilers.ts';
import { anEndpoints, HTTPS } from '../support/an-endpoints.ts';

const EXTRA = { name: 'extra', port: 1000, protocol: 'TCP' };

function add(given: Partial<MasterCountObservation>) {
  return addMaster({
    current: undefined,
    address: '1.2.3.4',
    masterCount: 4,
    ports: [HTTPS],
    reconcilePorts: true,
    ...given,
  });
}

describe('the master-count reconciler', () => {
  // The original does not follow its own address when trimming wraps around to the front; its next turn puts it right.
  test('the master-count reconciler removes even its own address from the middle of too many', () => {
    const current = anEndpoints(['4.3.2.1', '4.3.2.2', '4.3.2.3', '4.3.2.4']);
    const decision = add({ current, address: '4.3.2.25', masterCount: 1 });
    expect(decision).toEqual({ outcome: 'update', endpoints: anEndpoints(['4.3.2.2']) });
  });

  test('the master-count reconciler removes the first and then the third of five addresses when its own is the last and the count is three', () => {
    const decision = add({ current: anEndpoints(['a', 'b', 'c', 'd', 'e']), address: 'e', masterCount: 3 });
    expect(decision).toEqual({ outcome: 'update', endpoints: anEndpoints(['b', 'd', 'e']) });
  });

  test('the master-count reconciler keeps wrong ports beside a corrected address when ports are not reconciled', () => {
    const current = anEndpoints(['4.3.2.1'], [EXTRA]);
    expect(add({ current, masterCount: 1, reconcilePorts: false })).toEqual({
      outcome: 'update',
      endpoints: anEndpoints(['1.2.3.4'], [EXTRA]),
    });
  });

  test('the master-count reconciler adds the skip-mirror label to otherwise correct Endpoints', () => {
    const { metadata, ...rest } = anEndpoints(['1.2.3.4']);
    const current = { ...rest, metadata: { namespace: 'default', name: 'kubernetes' } };
    expect(add({ current })).toEqual({ outcome: 'update', endpoints: { ...rest, metadata } });
  });

  test('the master-count reconciler changes nothing when it removes an address from Endpoints without subsets', () => {
    expect(removeMasters(anEndpoints([]), new Set(['1.2.3.4']))).toEqual({ outcome: 'nothing' });
  });

  test('the master-count reconciler removes the last address, too', () => {
    expect(removeMasters(anEndpoints(['1.2.3.4']), new Set(['1.2.3.4']))).toEqual({
      outcome: 'update',
      endpoints: anEndpoints([]),
    });
  });
});
