import { expect, test } from '@jest/globals';
import { publishedFamilies } from '../../lib/cluster/published-objects.ts';
import { decideLeases, type LeaseObservation } from '../../lib/endpoints/lease-decisions.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  knownAddresses,
  publishedAddresses,
} from '../../lib/endpoints/published-servers.ts';
import type { Lease } from '../../lib/leases/lease.ts';
import { newLease, withdrawn } from '../../lib/leases/lease-states.ts';
import type { ProbeOutcome } from '../../lib/leases/probe-outcome.ts';
import type { ApiServerKind } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { aLease, type LeaseFields } from '../support/put-lease.ts';

const NOW_MS = 100_000_000;
const LEASE_MS = 15_000;
const HOUR_MS = 3_600_000;
const ADDRESS = '10.0.0.1';
const OTHER = '10.0.0.2';

const lease = (given: Partial<LeaseFields> = {}): Lease =>
  aLease({ address: ADDRESS, generation: 3, expiresAtMs: NOW_MS + 5_000, ...given });

const outcome = (verdict: ProbeOutcome['verdict']): ProbeOutcome => ({ verdict, odd: false, detail: verdict });

const ready = outcome('ready');
const alive = outcome('alive');
const shutsDown = outcome('shuttingDown');
/** The outcome of an answer with a status of 500 or more. */
const error = outcome('error');
const silence = outcome('silence');
const unknown = outcome('unknown');
const late: ProbeOutcome = { ...unknown, late: true };

const expecting = (kind: ApiServerKind = 'server', address = ADDRESS): ExpectedAddress => ({ address, kind });

function outcomesOf(own: ProbeOutcome, other: ProbeOutcome): ReadonlyMap<string, ProbeOutcome> {
  return new Map(Object.entries({ [ADDRESS]: own, [OTHER]: other }));
}

/** Returns the changes of leases after a probe of `ADDRESS` had this outcome, and a probe of `OTHER` was answered with 200. */
function decide(known: Lease | undefined, own: ProbeOutcome, given: Partial<LeaseObservation> = {}) {
  const changes = decideLeases({
    leases: known === undefined ? [] : [known],
    expected: [expecting()],
    outcomes: outcomesOf(own, ready),
    spec: aClusterSpec(),
    families: publishedFamilies(given.spec ?? aClusterSpec()),
    nowMs: NOW_MS,
    triesEveryMs: 10_000,
    ...given,
  });
  return [...changes];
}

/** The outcomes if no server answers. Our own network might be the cause, so the silence does not show that a server is down. */
const allSilent = outcomesOf(silence, silence);

const PAST_MS = NOW_MS - 1;
const expired = { expiresAtMs: PAST_MS };
const missed = (misses: number, agoMs = 0) => ({ misses, missedAtMs: NOW_MS - agoMs });
const downFor = (ms: number) => ({ ...missed(2, ms), expiresAtMs: NOW_MS - ms });
const until = { withdrawnUntilMs: NOW_MS + 60_000 };
const over = { withdrawnUntilMs: NOW_MS };
/** The fields of a withdrawn lease whose server was seen down. */
const seenDown = { ...until, seenDown: true };
const shutDown = (expiresAtMs = NOW_MS) => ({ ...missed(2), expiresAtMs, state: 'shuttingDown' as const });
const lateFor = (ms: number) => ({ lateSinceMs: NOW_MS - ms });
const shuttingDown = lease({ ...expired, ...missed(2), seenDown: true });
const refreshed = (generation: number): Partial<LeaseFields> => ({ generation, expiresAtMs: NOW_MS + LEASE_MS });
/** Returns the change of the lease of `ADDRESS` after a probe with this outcome. */
const written = ({ detail }: ProbeOutcome, after: Partial<LeaseFields>) => [
  [ADDRESS, lease({ ...after, lastProbe: detail })],
];

const endsNow = { expiresAtMs: NOW_MS };
const firstWithdrawn = withdrawn(newLease(ADDRESS), { untilMs: NOW_MS + 60_000 }, NOW_MS);
const expiredMissed = (misses: number, agoMs = 0) => ({ ...missed(misses, agoMs), ...expired });
const expiredAfter = (misses: number, agoMs: number) => lease(expiredMissed(misses, agoMs));
const lateMissed = (misses: number, agoMs = 0) => lease({ ...lateFor(30_000), ...expiredMissed(misses, agoMs) });
const down = { ...expiredMissed(2), lateSinceMs: 0 };

type Given = Partial<LeaseObservation>;
type After = Partial<LeaseFields> | 'unchanged';
type Row = readonly [title: string, before: Lease | undefined, own: ProbeOutcome, after: After, given?: Given];

const ALL_SILENT = { outcomes: allSilent };
const SHARED = { expected: [expecting('shared')] };
const ALONE = { outcomes: new Map([[ADDRESS, silence]]) };
const ALONE_WITH_ERROR = { outcomes: new Map([[ADDRESS, error]]) };

const PROBED: readonly Row[] = [
  ['the answer 200 of an address without a lease creates its lease', undefined, ready, refreshed(1)],
  ['an error answer of an address without a lease is not stored', undefined, error, 'unchanged'],
  ['a 200 refreshes an active lease', lease(), ready, refreshed(4)],
  ['a 200 refreshes an expired lease and resets its misses', lease({ ...expired, misses: 2 }), ready, refreshed(4)],
  ['the first silence is a miss', lease(), silence, missed(1)],
  ['silence of all addresses does not change an active lease', lease(), silence, 'unchanged', ALL_SILENT],
  ['a miss half an interval after the first one is the second miss', lease(missed(1, 5_000)), silence, missed(2)],
  ['if a tick is delivered twice, only one miss is counted', lease(missed(1, 4_999)), silence, 'unchanged'],
  ['a miss three intervals after the first is the second', lease(missed(1, 30_000)), silence, missed(2)],
  ['a miss more than three intervals after another is a first miss', lease(missed(1, 30_001)), silence, missed(1)],
  ['an earlier miss without a date is ignored', lease({ misses: 1 }), silence, missed(1)],
  ['an earlier miss with a date far in the future is ignored', lease(missed(1, -30_001)), silence, missed(1)],
  ['a third miss of an active lease changes only the date of the miss', lease(missed(2, 10_000)), silence, missed(2)],
  ['a miss after the expiry, soon after two misses, is dated now', expiredAfter(2, 10_000), silence, expiredMissed(2)],
  ['a miss after the expiry, long after two misses, is the first', expiredAfter(2, 30_001), silence, expiredMissed(1)],
  ['another miss of a removed address is not stored', lease(downFor(HOUR_MS / 2)), silence, 'unchanged'],
  ['a reported shutdown ends an active lease at once', lease(), shutsDown, shutDown()],
  ['a repeated shutdown at the expiry is not stored again', { ...shuttingDown, ...endsNow }, shutsDown, 'unchanged'],
  ['a reported shutdown of a removed address is stored', lease(downFor(5_000)), shutsDown, shutDown(NOW_MS - 5_000)],
  ['a shutdown after the expiry is two misses', lease({ ...expired, seenDown: true }), shutsDown, shutDown(PAST_MS)],
  ['a 200 refreshes the lease of a server that shut down', shuttingDown, ready, refreshed(4)],
  ['a 401 does not end the state shuttingDown', shuttingDown, alive, 'unchanged'],
  ['silence ends the state shuttingDown', shuttingDown, silence, { ...expired, ...missed(2), state: 'leased' }],
  ['silence of all addresses does not end the state shuttingDown', shuttingDown, silence, 'unchanged', ALL_SILENT],
  ['a 200 does not end a withdrawal', lease(until), ready, 'unchanged'],
  ['the first answer of a server does not end its withdrawal', firstWithdrawn, ready, 'unchanged'],
  ['after a reported shutdown during a withdrawal, the server is seen down', lease(until), shutsDown, seenDown],
  ['after silence during a withdrawal, the server is seen down', lease(until), silence, seenDown],
  ['silence of all addresses during a withdrawal changes nothing', lease(until), silence, 'unchanged', ALL_SILENT],
  ['a late answer during a withdrawal changes nothing', lease({ ...until, lateSinceMs: 0 }), late, 'unchanged'],
  ['a 200 ends the withdrawal of a server that was seen down', lease(seenDown), ready, refreshed(4)],
  ['a 401 after the end of a withdrawal refreshes the lease', lease({ ...over, seenDown: true }), alive, refreshed(4)],
  ['a miss after a withdrawal is counted', lease({ ...over, ...expired }), error, { ...over, ...expiredMissed(1) }],
  ['a reported shutdown after the end of a withdrawal ends the lease', lease(over), shutsDown, shutDown()],
  // Late answers.
  ['the second late answer is no miss', lease(lateFor(14_999)), late, 'unchanged'],
  ['the third late answer is a miss', lease(lateFor(15_000)), late, { ...lateFor(15_000), ...missed(1) }],
  ['the fourth late answer is the second miss', lateMissed(1, 10_000), late, lateMissed(2)],
  ['an answer in time ends a series of late answers', lease({ ...lateFor(30_000), ...missed(1) }), ready, refreshed(4)],
  ['late answers end the state shuttingDown', lease({ ...down, seenDown: true }), late, { ...down, state: 'leased' }],
  ['a probe that the pass ended early is no miss', lease({ lateSinceMs: 0 }), unknown, 'unchanged'],
  ['a reported shutdown behind a shared address refreshes the lease', lease(), shutsDown, refreshed(4), SHARED],
  ['during its withdrawal, the only probed server is seen down if silent', lease(until), silence, seenDown, ALONE],
  ['an error is a miss even if no other API server answers', lease(), error, missed(1), ALONE_WITH_ERROR],
];

test.each(PROBED)('after a probe: %s', (...row) => {
  const [, before, own, after, given] = row;
  const changes = after === 'unchanged' ? [] : written(own, after);
  expect(decide(before, own, given)).toEqual(changes);
});

test('the lease records the time of the first late answer, and no other field of the lease changes', () => {
  expect(decide(lease(), late)).toEqual([[ADDRESS, lease({ lateSinceMs: NOW_MS })]]);
});

test('the lease stores the detail of the probe as one short line', () => {
  const detail = `answered 500: etcd\u001b[31m\n\u2028${'😀'.repeat(150)}`;
  const [change] = decide(lease(), { ...silence, detail });
  expect(change?.[1]?.lastProbe).toMatch(/^answered 500: etcd \[31m 😀+\u{fffd}?…$/u);
  expect(change?.[1]?.lastProbe?.length).toBeLessThanOrEqual(200);
  expect(change?.[1]?.lastProbe?.isWellFormed()).toBe(true);
});

test.each([
  ['is valid', { expiresAtMs: NOW_MS + 1 }],
  ['is withdrawn', { expiresAtMs: PAST_MS, withdrawnUntilMs: NOW_MS + 1, seenDown: true }],
])("a probe does not change an agent's lease that %s", (_name, given) => {
  expect(decide(lease({ source: 'agent', ...given }), ready)).toEqual([]);
  expect(decide(lease({ source: 'agent', ...given }), silence)).toEqual([]);
});

test('if the lease of an agent has expired, a probe by a tick refreshes the lease if the server answers, and otherwise counts a miss', () => {
  const known = lease({ source: 'agent', ...expired });
  expect(decide(known, ready)).toEqual(written(ready, refreshed(4)));
  expect(decide(known, silence)).toEqual(written(silence, { source: 'agent', ...expired, ...missed(1) }));
});

test.each([
  ['a silent address', 'probe', [], 0],
  ['a silent address, while an agent of another address runs', 'probe', ['agent'], 0],
  ['the address of a stopped agent', 'agent', [], 0],
  ['the address of a stopped agent, while another agent runs', 'agent', ['agent'], 1],
] as const)('without answer, the lease of %s (source %s, others %j) has %i misses', (_name, source, others, misses) => {
  const known = lease({ source, ...expired });
  const leases = [known, ...others.map((other) => lease({ address: '10.0.0.3', source: other }))];
  expect(decide(undefined, silence, { leases, outcomes: allSilent })).toMatchObject([[ADDRESS, { misses }]]);
});

const others = { expected: [expecting('server', OTHER)], outcomes: new Map([[OTHER, ready]]) };
const noneLive = { ...others, outcomes: new Map([[OTHER, silence]]) };
const withAgent = { expected: [], leases: [lease(), lease({ address: OTHER, source: 'agent' })] };
const ofHost = lease({ host: 'api.example.com' });
const withHost = { ...others, spec: aClusterSpec({ apiServers: [aHost('api.example.com')] }) };
const silent = { outcomes: outcomesOf(silence, ready) };
const dead = lease({ expiresAtMs: NOW_MS - HOUR_MS, misses: 2 });
const remembered = { ...dead, misses: 0, lastProbe: 'silence' };

test.each<[string, Lease, Partial<LeaseObservation>, boolean]>([
  ['that was removed from the spec is deleted at once if another address is live', lease(), others, true],
  ['that was removed from the spec is deleted while an agent refreshes another lease', lease(), withAgent, true],
  ['that was removed from the spec is kept if no other address is known', lease(), { expected: [] }, false],
  ['that was removed from the spec is kept while no other address is live', lease(), noneLive, false],
  ['that was removed from the spec is kept until the end of its withdrawal', lease(until), others, false],
  ['that a host name no longer resolves to is kept until the lease expires', ofHost, withHost, false],
  ['that a host name no longer resolves to is deleted at its expiry', { ...ofHost, ...endsNow }, withHost, true],
  ['of a host name that was removed from the spec is deleted', lease({ host: 'gone.example.com' }), withHost, true],
  ['is deleted an hour after its expiry', dead, silent, true],
  ['with an agent is deleted an hour after its expiry', { ...dead, source: 'agent' }, silent, true],
  ['is kept for an hour after the end of its withdrawal', lease({ ...dead, withdrawnUntilMs: PAST_MS }), silent, false],
  ['is kept if no server answers and no miss was counted', remembered, { outcomes: allSilent }, false],
])('the lease of an address %s', (_title, known, given, isDeleted) => {
  expect(decide(known, ready, given).filter(([, after]) => after === undefined)).toHaveLength(isDeleted ? 1 : 0);
});

const untilMs = NOW_MS + 60_000;
const removedAt = (ms: number) => ({ ...missed(2, 2), expiresAtMs: PAST_MS + ms });
const later = { withdrawnUntilMs: untilMs + 1 };

test.each<readonly [string, Lease, Partial<LeaseFields>]>([
  ['keeps the counted misses', lease(missed(1)), { ...missed(1), ...until }],
  ['stores a new lease without a refresh', newLease(ADDRESS), { generation: 0, expiresAtMs: 0, ...until }],
  ['that is repeated with an earlier end keeps the later end', lease(later), later],
  ['removes the mark seenDown of an earlier withdrawal', lease({ ...over, seenDown: true }), until],
  ['removes the mark seenDown of an earlier shutdown', shuttingDown, { ...missed(2), ...until, ...endsNow }],
  ['sets the end of a lease with one miss to now', lease(expiredMissed(1)), { ...missed(1), ...until, ...endsNow }],
  ['sets the end of an expired lease to its second miss', lease(removedAt(-2)), { ...until, ...removedAt(-1) }],
])('a withdrawal %s', (_title, before, after) => {
  expect(withdrawn(before, { untilMs }, NOW_MS)).toEqual(lease(after));
});

test('a withdrawal because of a shutdown ends the lease', () => {
  const released = { ...until, seenDown: true, source: 'agent' } as const;
  const going = { untilMs, goingDown: true };
  expect(withdrawn(lease(), going, NOW_MS)).toEqual(lease({ ...released, expiresAtMs: NOW_MS }));
  expect(withdrawn(lease({ ...until, ...expired }), going, NOW_MS)).toEqual(lease({ ...released, ...expired }));
});

const agent = { source: 'agent' } as const;
const isPublished = (given: Partial<LeaseFields>) =>
  publishedAddresses([lease(given)], [{ address: ADDRESS }], NOW_MS).length > 0;

// Without two misses, our own network might have failed.
test.each<[string, Partial<LeaseFields>]>([
  ['an address with a valid lease and two misses', { misses: 2 }],
  ['an address with an expired lease and one miss', { ...expired, misses: 1 }],
  ['an address with an expired lease and two misses from before the expiry', { ...missed(2, 10_000), ...expired }],
  ['an address with a valid lease of an agent after its withdrawal', { ...agent, withdrawnUntilMs: NOW_MS }],
  ['an address with an expired lease of an agent without a miss', { ...agent, ...expired }],
  ['an address that was removed from the spec and has a valid lease', { address: OTHER }],
])('the published addresses contain %s', (_name, given) => expect(isPublished(given)).toBe(true));

test.each<[string, Partial<LeaseFields>]>([
  ['an address with an expired lease and two misses', { ...expired, misses: 2 }],
  ['an address with an expired lease and two misses, one of them after the expiry', { ...missed(2), ...expired }],
  ['an address whose lease was never refreshed', { generation: 0, ...expired }],
  ['a withdrawn address', { withdrawnUntilMs: NOW_MS + 1 }],
  ['an address whose withdrawal is over and whose valid lease was not refreshed since', { withdrawnUntilMs: NOW_MS }],
  ['an address whose withdrawal is over and whose lease has expired', { ...expired, withdrawnUntilMs: NOW_MS }],
  ['an address outside the spec with an expired lease of an agent', { address: OTHER, ...agent, ...expired }],
  ['an address that was removed from the spec and has an expired lease', { address: OTHER, ...expired }],
])('the published addresses do not contain %s', (_name, given) => expect(isPublished(given)).toBe(false));

test('the published addresses are in byte order', () => {
  const leases = ['10.0.0.2', '10.0.0.10', '10.0.0.1'].map((address) => lease({ address }));
  expect(publishedAddresses(leases, [], NOW_MS)).toEqual(['10.0.0.1', '10.0.0.10', '10.0.0.2']);
});

test('the reconciler "lease" excludes all addresses without an active lease; the reconciler "master-count" excludes only addresses that are withdrawn or whose server reported a shutdown', () => {
  const [shutDown, withdrawn] = ['10.0.0.3', '10.0.0.4'] as const;
  const others = [
    { address: OTHER, misses: 2 },
    { address: shutDown, seenDown: true },
    { address: withdrawn, ...until },
  ];
  const leases = [lease(), ...others.map(lease)];
  expect(excludedAddresses(leases, [ADDRESS], 'lease', NOW_MS)).toEqual([OTHER, shutDown, withdrawn]);
  expect(excludedAddresses(leases, [ADDRESS], 'master-count', NOW_MS)).toEqual([shutDown, withdrawn]);
});

test('knownAddresses returns the addresses of the spec, and the addresses of the leases whose host name is in the spec', () => {
  const spec = aClusterSpec({ apiServers: [aServer(ADDRESS), aHost('api.example.com')] });
  const known = [{ host: 'api.example.com' }, { address: OTHER, host: 'api.example.com' }];
  const leases = [...known, { address: '10.0.0.3', host: 'gone.example.com' }].map(lease);
  expect(knownAddresses(spec, leases)).toMatchObject([
    { address: ADDRESS, kind: 'server' },
    { address: OTHER, kind: 'shared', host: 'api.example.com' },
  ]);
});
