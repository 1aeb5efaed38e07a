import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readyAddresses } from '../../lib/endpoints/objects.ts';
import { type EndpointsObservation, isUrgent, planEndpoints, plansWrite } from '../../lib/endpoints/plan-endpoints.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { runs } from '../support/properties.ts';

const [A, B, C] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;
const EXTRA = { name: 'extra', port: 1000, protocol: 'TCP' } as const;

function observed(given: Partial<EndpointsObservation>): EndpointsObservation {
  return { spec: aClusterSpec(), current: anEndpoints([A]), slice: aSlice([A]), live: [A], excluded: [], ...given };
}

describe('the plan of a tick', () => {
  test.each(['lease', 'master-count'] as const)('with %s refuses to publish no address', (reconciler) => {
    expect(planEndpoints(observed({ spec: aClusterSpec({ endpoints: { reconciler } }), live: [] }))).toEqual({
      outcome: 'refused',
    });
  });

  test('the plan of a tick leaves wrong ports unchanged with reconcilePorts: false', () => {
    const current = anEndpoints([A], [EXTRA]);
    expect(
      planEndpoints(observed({ current, spec: aClusterSpec({ endpoints: { reconcilePorts: false } }) })),
    ).toMatchObject({
      outcome: 'keep',
    });
    expect(planEndpoints(observed({ current }))).toEqual({ outcome: 'update', endpoints: anEndpoints([A]) });
  });

  test('the plan of a tick accepts the order of ports of an API server', () => {
    const current = anEndpoints([A], [EXTRA, HTTPS]);
    expect(
      planEndpoints(observed({ current, spec: aClusterSpec({ endpoints: { extraPorts: [EXTRA] } }) })),
    ).toMatchObject({
      outcome: 'keep',
    });
  });

  test('corrects a live address that another writer marked as not ready', () => {
    const current = { ...anEndpoints([]), subsets: [{ notReadyAddresses: [{ ip: A }, { ip: C }], ports: [HTTPS] }] };
    const decision = planEndpoints(observed({ current }));
    const healed = [{ addresses: [{ ip: A }], notReadyAddresses: [{ ip: C }], ports: [HTTPS] }];
    expect(decision).toMatchObject({ outcome: 'update', endpoints: { subsets: healed } });
  });

  test('the plan of a tick removes an address from those that are not ready when it is ready as well', () => {
    const subset = { addresses: [{ ip: A }], ports: [HTTPS] };
    const current = { ...anEndpoints([]), subsets: [{ ...subset, notReadyAddresses: [{ ip: A }] }] };
    const corrected = { ...current, subsets: [{ ...subset, notReadyAddresses: [] }] };
    expect(planEndpoints(observed({ current }))).toEqual({ outcome: 'update', endpoints: corrected });
  });

  test.each(['nothing', 'refused'] as const)('plans no write with the outcome %s', (outcome) => {
    expect(plansWrite({ outcome }, undefined)).toBe(false);
  });

  test('plans a write when only the slice differs', () => {
    const decision = planEndpoints(observed({}));
    expect(plansWrite(decision, aSlice([A]))).toBe(false);
    expect(plansWrite(decision, aSlice([B]))).toBe(true);
    expect(plansWrite(decision, undefined)).toBe(true);
  });

  test.each([
    ['a correction of missing Endpoints', { current: undefined }, true],
    ['a correction of Endpoints without an address', { current: anEndpoints([]) }, true],
    ['a correction of a slice without an address', { slice: aSlice([]) }, true],
    ['the removal of an excluded address', { current: anEndpoints([A, B]), excluded: [B] }, true],
    ['the removal of an excluded address from the slice alone', { slice: aSlice([A, B]), excluded: [B] }, true],
    ['the removal of an unknown address', { current: anEndpoints([A, C]), excluded: [B] }, false],
    ['the addition of a live address', { live: [A, B] }, false],
  ] as const)('%s is urgent: %3$s', (_name, given, urgent) => {
    expect(isUrgent(observed(given))).toBe(urgent);
  });
});

describe('the plan of a tick with a master count', () => {
  const masters = (masterCount: number) => aClusterSpec({ endpoints: { reconciler: 'master-count', masterCount } });

  test('the plan of a tick with a master count publishes every live address', () => {
    const decision = planEndpoints(observed({ spec: masters(3), current: undefined, live: [A, B, C] }));
    expect(decision).toEqual({ outcome: 'create', endpoints: anEndpoints([A, B, C]) });
  });

  test('the plan of a tick with a master count changes nothing with more live servers than the count if one of them is published', () => {
    const spec = aClusterSpec({ endpoints: { reconciler: 'master-count', masterCount: 1 } });
    const settled = observed({ spec, current: anEndpoints([C]), live: [A, B, C] });
    expect(planEndpoints(settled)).toEqual({ outcome: 'keep', endpoints: settled.current });
  });

  test('the plan of a tick with a master count publishes a live address that another writer marked as not ready', () => {
    const spec = aClusterSpec({ endpoints: { reconciler: 'master-count', masterCount: 2 } });
    const current = { ...anEndpoints([]), subsets: [{ notReadyAddresses: [{ ip: A }, { ip: B }], ports: [HTTPS] }] };
    const decision = planEndpoints(observed({ spec, current, live: [A, B] }));
    expect('endpoints' in decision && readyAddresses(decision.endpoints)).toEqual([A, B]);
  });

  test('the plan of a tick with a master count removes an address that reported its shutdown', () => {
    const decision = planEndpoints(
      observed({ spec: masters(2), current: anEndpoints([A, B]), live: [A], excluded: [B] }),
    );
    expect(decision).toEqual({ outcome: 'update', endpoints: anEndpoints([A]) });
  });

  test('the plan of a tick with a master count publishes every live address and no more than the count after any previous state', () => {
    const addresses = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const subset = (maxLength: number) => fc.subarray(addresses, { minLength: 1, maxLength });
    fc.assert(
      fc.property(subset(8), subset(4), fc.integer({ min: 0, max: 2 }), (before, live, spare) => {
        const masterCount = live.length + spare;
        const decision = planEndpoints(observed({ spec: masters(masterCount), current: anEndpoints(before), live }));
        const after = 'endpoints' in decision ? readyAddresses(decision.endpoints) : [];
        expect(after).toEqual(expect.arrayContaining(live));
        expect(after.length).toBeLessThanOrEqual(masterCount);
      }),
      { numRuns: runs(100) },
    );
  });
});
