import { expect, test } from '@jest/globals';
import type { ApiServerKind } from '../../lib/cluster/cluster-spec.ts';
import { publishedFamilies } from '../../lib/endpoints/objects.ts';
import type { ProbeOutcome } from '../../lib/endpoints/probe-outcome.ts';
import { publishedServers } from '../../lib/endpoints/published-servers.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { anEndpoints } from '../support/an-endpoints.ts';

const NOW_MS = 100_000_000;
const [ADDRESS, OTHER] = ['10.0.0.1', '10.0.0.2'] as const;
const REMEMBERED = { address: ADDRESS, generation: 1, source: 'probe', expiresAtMs: NOW_MS, state: 'leased' };

function outcome(verdict: ProbeOutcome['verdict']): ProbeOutcome {
  return { verdict, odd: false, detail: verdict };
}

/** The lease that a published address gets if the table has none. */
function remembered(own: ProbeOutcome['verdict'], other: ProbeOutcome['verdict'], kind: ApiServerKind, host?: string) {
  const spec = aClusterSpec();
  const [family] = publishedFamilies(spec);
  return publishedServers({
    spec,
    nowMs: NOW_MS,
    expected: [{ address: ADDRESS, kind, ...(host !== undefined && { host }) }],
    outcomes: new Map([
      [ADDRESS, outcome(own)],
      [OTHER, outcome(other)],
    ]),
    families: [{ ...family, objects: { Endpoints: anEndpoints([ADDRESS]) } }],
    stored: { leases: [] },
    unwritten: new Map(),
    unresolved: [],
  }).remembered.get(ADDRESS);
}

test.each([
  { name: 'with a miss if it is silent', own: 'silence', other: 'ready', lease: { misses: 1, missedAtMs: NOW_MS } },
  { name: 'without a miss if all are silent', own: 'silence', other: 'silence', lease: { misses: 0 } },
] as const)('a published address without a lease gets one that expires now, $name', ({ own, other, lease }) => {
  expect(remembered(own, other, 'server')).toEqual({ ...REMEMBERED, ...lease, lastProbe: 'silence' });
});

test('a published address without a lease gets none if its server shuts down, unless the address is shared', () => {
  expect(remembered('shuttingDown', 'ready', 'server')).toBeUndefined();
  expect(remembered('shuttingDown', 'ready', 'shared')).toMatchObject(REMEMBERED);
});

test('the lease of a published record stores its host name', () => {
  expect(remembered('ready', 'ready', 'shared', 'api.example.com')).toMatchObject({ host: 'api.example.com' });
});
