import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EndpointAddress, EndpointsObject } from '../../lib/cluster/published-objects.ts';
import {
  addMaster,
  addMasters,
  leaseEndpoints,
  type MasterRules,
  removeMasters,
} from '../../lib/endpoints/reconcilers.ts';
import { anEndpoints, HTTPS } from '../support/an-endpoints.ts';
import { runs } from '../support/properties.ts';

/* The golden cases compare both reconcilers with upstream. */

const RULES = { ports: [HTTPS], reconcilePorts: true };

test('the lease reconciler keeps labels, annotations and all other fields of the object', () => {
  const labels = { mine: 'kept' };
  const metadata = { ...anEndpoints([]).metadata, labels, annotations: { a: 'b' }, resourceVersion: '7' };
  const current = { ...anEndpoints(['9.9.9.9']), somethingNew: 1, metadata };
  expect(leaseEndpoints(current, ['1.2.3.4'], RULES)).toEqual({
    ...current,
    subsets: anEndpoints(['1.2.3.4']).subsets,
    metadata: { ...metadata, labels: { ...labels, 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
  });
});

test('removeMasters removes an address even if it is the last one, and does not change Endpoints without subsets', () => {
  expect(removeMasters(anEndpoints(['1.2.3.4']), new Set(['1.2.3.4']))).toEqual(anEndpoints([]));
  expect(removeMasters(anEndpoints([]), new Set(['1.2.3.4']))).toBeUndefined();
});

const ADDRESSES = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.10', '10.0.0.20', '10.0.0.100'];
const anAddress = fc.constantFrom(...ADDRESSES);
const anEntry = fc
  .tuple(anAddress, fc.constantFrom('', 'a', 'b'))
  .map(([ip, uid]): EndpointAddress => (uid === '' ? { ip } : { ip, targetRef: { uid } }));
const someAddresses = fc.array(anEntry, { maxLength: 8 });
const somePorts = fc.constantFrom([HTTPS], [{ ...HTTPS, port: 1 }], [HTTPS, { name: 'b', port: 2, protocol: 'TCP' }]);
const aSubset = fc.record({ addresses: someAddresses, ports: somePorts });

/** Adds each server in turn, in more rounds than are necessary. */
function oneByOne(current: EndpointsObject | undefined, live: readonly string[], rules: MasterRules) {
  let endpoints = current;
  for (let sequence = 0; sequence <= live.length + 2; sequence++) {
    for (const address of live) endpoints = addMaster(endpoints, address, rules);
  }
  return endpoints;
}

test('addMasters has the same result as repeated calls of addMaster with each server in turn', () => {
  fc.assert(
    fc.property(
      fc.option(fc.array(aSubset, { maxLength: 2 }), { nil: undefined }),
      fc.uniqueArray(anAddress),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (subsets, live, masterCount, reconcilePorts) => {
        const current = subsets && { ...anEndpoints([]), subsets };
        const how = { masterCount, ports: [HTTPS], reconcilePorts };
        const sorted = live.toSorted();
        expect(addMasters(current, sorted, how)).toEqual(oneByOne(current, sorted, how));
      },
    ),
    { numRuns: runs(1_000) },
  );
});
