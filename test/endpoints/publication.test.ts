import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { addressesIn, type EndpointSubset } from '../../lib/cluster/published-objects.ts';
import { type FamilyObservation, isHarmful, planWrites } from '../../lib/endpoints/publication.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { runs } from '../support/properties.ts';

const [A, B, C] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;
const EXTRA = { name: 'extra', port: 1000, protocol: 'TCP' } as const;

/** Returns an observation in which Endpoints and slice publish A, and A is live. */
function observed(given: Partial<FamilyObservation> = {}): FamilyObservation {
  const objects = { Endpoints: anEndpoints([A]), EndpointSlice: aSlice([A]) };
  return { spec: aClusterSpec(), family: 'IPv4', objects, live: [A], excluded: [], ...given };
}

function withSubsets(...subsets: readonly EndpointSubset[]) {
  return { Endpoints: { ...anEndpoints([]), subsets }, EndpointSlice: undefined };
}

const mirror = { verb: 'mirror', object: undefined, prune: false };
const masters = (masterCount: number) => aClusterSpec({ endpoints: { reconciler: 'master-count', masterCount } });

describe('planWrites', () => {
  test('planWrites returns no write if the ports are correct but in another order', () => {
    const ports = [EXTRA, HTTPS];
    const objects = { Endpoints: anEndpoints([A], ports), EndpointSlice: aSlice([A], ports) };
    const spec = aClusterSpec({ endpoints: { extraPorts: [EXTRA] } });
    expect(planWrites(observed({ objects, spec }))).toEqual([]);
  });

  test('if the ports of the Endpoints are wrong, planWrites corrects the Endpoints and then the slice', () => {
    const objects = { Endpoints: anEndpoints([A], [EXTRA]), EndpointSlice: aSlice([A]) };
    const update = { verb: 'update', object: anEndpoints([A]) };
    expect(planWrites(observed({ objects }))).toEqual([update, { ...mirror, object: aSlice([A]) }]);
  });

  test('planWrites moves a live address from notReadyAddresses to addresses, and does not move an address that is not live', () => {
    const objects = withSubsets({ notReadyAddresses: [{ ip: A }, { ip: C }], ports: [HTTPS] });
    const subsets = [{ addresses: [{ ip: A }], notReadyAddresses: [{ ip: C }], ports: [HTTPS] }];
    expect(planWrites(observed({ objects }))[0]?.object).toMatchObject({ subsets });
  });

  test('planWrites removes an address from notReadyAddresses if the same subset has it in addresses', () => {
    const subset = { addresses: [{ ip: A }], ports: [HTTPS] };
    const objects = withSubsets({ ...subset, notReadyAddresses: [{ ip: A }] });
    const corrected = { ...objects.Endpoints, subsets: [{ ...subset, notReadyAddresses: [] }] };
    expect(planWrites(observed({ objects }))).toEqual([{ verb: 'update', object: corrected }, mirror]);
  });

  test('planWrites creates only the slice if the Endpoints are correct and the slice is missing', () => {
    const objects = { Endpoints: anEndpoints([A]), EndpointSlice: undefined };
    expect(planWrites(observed({ objects }))).toEqual([{ verb: 'create', object: aSlice([A]) }]);
  });

  const reconcilers = ['lease', 'master-count'] as const;
  test.each(reconcilers)('planWrites with reconciler %s creates no Endpoints if no server is live', (reconciler) => {
    const spec = aClusterSpec({ endpoints: { reconciler } });
    expect(planWrites(observed({ spec, live: [], objects: { Endpoints: undefined } }))).toEqual([]);
  });

  const both = { Endpoints: anEndpoints([A]), EndpointSlice: aSlice([A]) };
  const slice = aSlice([A]);
  const unready = (address: string) => ({ addresses: [address], conditions: { ready: false } });
  const emptied = { ...slice, endpoints: null };
  const notReady = { ...slice, endpoints: [unready(A)] };
  const oneReady = { ...slice, endpoints: [unready(A), { addresses: [C] }] };
  const excludedNotReady = { ...slice, endpoints: [unready(B), { addresses: [A] }] };
  const unset = { ...slice, endpoints: [{ addresses: [A], conditions: null }] };
  const unlabelled = { ...slice, metadata: { ...slice.metadata, labels: {} } };
  const otherPort = { ...HTTPS, name: 'other', port: 7443 };
  const renamed = { ...HTTPS, name: 'api' };
  test.each([
    ['must not see missing Endpoints', { ...both, Endpoints: undefined }, true],
    ['must not see Endpoints with an excluded address', { ...both, Endpoints: anEndpoints([A, B]) }, true],
    ['must not see a slice that another writer emptied with null', { ...both, EndpointSlice: emptied }, true],
    ['must not see a slice without a ready endpoint', { ...both, EndpointSlice: notReady }, true],
    ['must not see a slice without the label of the Service', { ...both, EndpointSlice: unlabelled }, true],
    ['must not see a slice of another family', { ...both, EndpointSlice: { ...slice, addressType: 'IPv6' } }, true],
    ['must not see a slice with another port', { ...both, EndpointSlice: aSlice([A], [otherPort]) }, true],
    ['must not see a slice with another name of the port', { ...both, EndpointSlice: aSlice([A], [renamed]) }, true],
    ['must not see Endpoints with another port', { ...both, Endpoints: anEndpoints([A], [otherPort]) }, true],
    ['must not see Endpoints with subsets null', { ...both, Endpoints: { ...anEndpoints([]), subsets: null } }, true],
    ['are allowed to see a slice with one ready endpoint', { ...both, EndpointSlice: oneReady }, false],
    ['are allowed to see an excluded address that is not ready', { ...both, EndpointSlice: excludedNotReady }, false],
    ['are allowed to see an endpoint whose readiness is not set', { ...both, EndpointSlice: unset }, false],
  ])('isHarmful finds that clients %s', (_name, objects, harmful) => {
    const servers = { objects: objects as FamilyObservation['objects'], excluded: [B], spec: aClusterSpec() };
    expect(isHarmful({ ...servers, family: 'IPv4' })).toBe(harmful);
  });
});

test('planWrites with a master count of one returns no write if one of several live servers is already published', () => {
  const objects = { Endpoints: anEndpoints([C]), EndpointSlice: aSlice([C]) };
  expect(planWrites(observed({ spec: masters(1), objects, live: [A, B, C] }))).toEqual([]);
});

test('planWrites with a master count publishes a live address that another writer marked as not ready', () => {
  const objects = withSubsets({ notReadyAddresses: [{ ip: A }, { ip: B }], ports: [HTTPS] });
  const [write] = planWrites(observed({ spec: masters(2), objects, live: [A, B] }));
  expect(addressesIn(write?.object)).toEqual([A, B]);
});

test('planWrites with a master count removes the address of a server that reported its shutdown', () => {
  const objects = { Endpoints: anEndpoints([A, B]), EndpointSlice: aSlice([A, B]) };
  const [write] = planWrites(observed({ spec: masters(2), objects, live: [A], excluded: [B] }));
  expect(write).toEqual({ verb: 'update', object: anEndpoints([A]) });
});

test('planWrites with a master count publishes every live address if the count allows it, and never more addresses than the count', () => {
  const addresses = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const subset = (maxLength: number) => fc.subarray(addresses, { minLength: 1, maxLength });
  fc.assert(
    fc.property(subset(8), subset(4), fc.integer({ min: 0, max: 2 }), (before, live, spare) => {
      const masterCount = live.length + spare;
      const objects = { Endpoints: anEndpoints(before), EndpointSlice: aSlice(before) };
      const [write] = planWrites(observed({ spec: masters(masterCount), objects, live }));
      const after = addressesIn(write?.object ?? objects.Endpoints);
      expect(after).toEqual(expect.arrayContaining(live));
      expect(after.length).toBeLessThanOrEqual(masterCount);
    }),
    { numRuns: runs(100) },
  );
});
