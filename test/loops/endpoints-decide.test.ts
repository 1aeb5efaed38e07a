import { expect, test } from '@jest/globals';
import type { Lease } from '../../lib/cluster/lease.ts';
import { desiredService } from '../../lib/endpoints/kubernetes-service.ts';
import { publishedFamilies } from '../../lib/endpoints/objects.ts';
import type { World } from '../../lib/loops/kubernetes-service.ts';
import { decide } from '../../lib/loops/kubernetes-service.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { A, B } from '../support/endpoints-world.ts';
import { aLease } from '../support/put-lease.ts';

const NOW_MS = 1_000_000;
const ACTIVE = { expiresAtMs: NOW_MS + 15_000 };
const DOWN = { expiresAtMs: NOW_MS - 20_000, misses: 2 };

/** Endpoints and slice publish both addresses, which have active leases. */
function aWorld(given: Partial<World> = {}, ...leases: readonly Lease[]): World {
  const spec = aClusterSpec({ apiServers: [aServer(A), aServer(B)] });
  const stored = {
    leases: leases.length > 0 ? leases : [A, B].map((address) => aLease({ address, ...ACTIVE })),
    item: undefined,
  };
  const expected = [A, B].map((address) => ({ address, kind: 'server' }) as const);
  const [family] = publishedFamilies(spec);
  const published = { Endpoints: anEndpoints([A, B]), EndpointSlice: aSlice([A, B]) };
  const objects = { service: desiredService(spec), slices: [aSlice([A, B])] };
  const observed = {
    expected,
    outcomes: new Map(),
    unresolved: [],
    unwritten: new Map(),
    lines: [],
    findings: [],
  };
  const families = [{ ...family, objects: published }] as const;
  return { spec, nowMs: NOW_MS, families, stored, contest: {}, slicesContest: {}, ...observed, ...objects, ...given };
}

test('the decision of a pass writes nothing where the endpoints publish the live addresses', () => {
  const { isQuiet, endpoints, counts } = decide(aWorld());
  expect([isQuiet, endpoints.writes, counts]).toEqual([true, [], { addresses: 2, activeLeases: 2 }]);
});

test('the decision of a pass creates a Service that is missing', () => {
  expect(decide(aWorld({ service: undefined }))).toMatchObject({ isQuiet: false, service: { verb: 'create' } });
});

test('the decision of a pass removes an address with an expired lease and two misses, and gives the reason', () => {
  const { endpoints } = decide(aWorld({}, aLease({ address: A, ...ACTIVE }), aLease({ address: B, ...DOWN })));
  expect(endpoints).toMatchObject({
    writes: [{ verb: 'update', object: anEndpoints([A]) }, { verb: 'mirror' }],
    removals: [`${B} from the endpoints: its lease expired at 1970-01-01T00:16:20.000Z`],
  });
});

test('the decision of a pass refuses to publish no address, and reads the leases again before that', () => {
  const { isQuiet, endpoints, errors } = decide(aWorld({}, aLease({ address: A, ...DOWN })));
  expect([isQuiet, endpoints.writes]).toEqual([false, []]);
  expect(errors).toMatchObject([{ code: 'NoLiveLease' }]);
});

test('the decision of a pass keeps an address that is published without a lease, and gives it one', () => {
  const { remembered, endpoints } = decide(aWorld({}, aLease({ address: A, ...ACTIVE })));
  expect([...remembered]).toMatchObject([[B, { expiresAtMs: NOW_MS, misses: 0 }]]);
  expect(endpoints.writes).toEqual([]);
});

test('the decision of a pass keeps an address that may be of a host name whose look-up failed, with and without a lease', () => {
  const spec = aClusterSpec({ apiServers: [aServer(A), aHost('api.example.com')] });
  const given = { spec, expected: [{ address: A, kind: 'server' }], unresolved: ['api.example.com'] } as const;
  const first = decide(aWorld(given, aLease({ address: A, ...ACTIVE })));
  expect([first.endpoints.writes, first.counts['addresses']]).toEqual([[], 2]);
  const leases = [aLease({ address: A, ...ACTIVE }), first.remembered.get(B)].filter((lease) => lease !== undefined);
  expect(decide(aWorld(given, ...leases))).toMatchObject({ isQuiet: true, counts: { addresses: 2 } });
});

test('the decision of a pass keeps an address that answered although the write of its lease was lost', () => {
  const leases = [aLease({ address: A, ...ACTIVE }), aLease({ address: B, ...DOWN })];
  const unwritten = new Map([[B, aLease({ address: B, generation: 2, ...ACTIVE })]]);
  expect(decide(aWorld({ unwritten }, ...leases)).isQuiet).toBe(true);
  const withdrawn = aLease({ address: B, ...DOWN, withdrawnUntilMs: NOW_MS + 1 });
  const stored = { leases: [aLease({ address: A, ...ACTIVE }), withdrawn], item: undefined };
  expect(decide(aWorld({ unwritten, stored })).endpoints.removals).toHaveLength(1);
});
