import { describe, expect, test } from '@jest/globals';
import type { Lease } from '../../lib/cluster/lease.ts';
import { newLease, nextLease, type ServerAnswer, withdrawn } from '../../lib/endpoints/lease-states.ts';
import { excludedAddresses, publishedAddresses } from '../../lib/endpoints/published-servers.ts';
import { aLease, type LeaseFields } from '../support/put-lease.ts';

const NOW_MS = 100_000_000;
const ADDRESS = '10.0.0.1';
const OTHER = '10.0.0.2';
const HALF_HOUR_MS = 1_800_000;

function lease(given: Partial<LeaseFields> = {}): Lease {
  return aLease({ address: ADDRESS, generation: 3, expiresAtMs: NOW_MS + 5_000, ...given });
}

/** An answer of each kind to a probe of the tick, with the interval of 10 s. */
function probed(answer: ServerAnswer['answer'], given: Partial<ServerAnswer> = {}): ServerAnswer {
  const miss = { shortestMs: 5_000, longestMs: 30_000 };
  const proof = { provesEnd: answer === 'silence' || answer === 'late', miss, lateAfterMs: 15_000 };
  return { answer, source: 'probe', leaseMs: 15_000, lastProbe: answer, ...proof, ...given };
}

function ofAgent(answer: ServerAnswer['answer']): ServerAnswer {
  return { answer, source: 'agent', leaseMs: 15_000, provesEnd: answer === 'silence' };
}

const ready = probed('ready');
const alive = probed('alive');
const shutsDown = probed('shuttingDown');
const error = probed('error');
const silence = probed('silence');
/** Silence of all addresses, which may be our own network's. */
const unproven: ServerAnswer = {
  answer: 'silence',
  source: 'probe',
  leaseMs: 15_000,
  provesEnd: false,
  lastProbe: 'silence',
};
const late = probed('late');

const PAST_MS = NOW_MS - 1;
const expired = { expiresAtMs: PAST_MS };
const missed = (misses: number, agoMs = 0) => ({ misses, missedAtMs: NOW_MS - agoMs });
const downFor = (ms: number) => ({ ...missed(2, ms), expiresAtMs: NOW_MS - ms });
const until = { withdrawnUntilMs: NOW_MS + 60_000 };
const over = { withdrawnUntilMs: NOW_MS };
const shuttingDown = lease({ ...expired, ...missed(2), seenDown: true });
const refreshed = (generation: number): Partial<LeaseFields> => ({ generation, expiresAtMs: NOW_MS + 15_000 });

type Row = readonly [string, Lease | undefined, ServerAnswer, Partial<LeaseFields> | 'unchanged'];

const PROBED: readonly Row[] = [
  ['a 200 takes a lease for an unknown address', undefined, ready, refreshed(1)],
  ['a 401 takes a lease for an unknown address', undefined, alive, refreshed(1)],
  ['an error of an unknown address is not stored', undefined, error, 'unchanged'],
  ['silence of an unknown address is not stored', undefined, silence, 'unchanged'],
  ['a shutdown of an unknown address is not stored', undefined, shutsDown, 'unchanged'],
  ['a 200 refreshes an active lease', lease(), ready, refreshed(4)],
  ['a 401 refreshes an active lease', lease(), alive, refreshed(4)],
  ['a 200 refreshes an expired lease and ends its misses', lease({ ...expired, misses: 2 }), ready, refreshed(4)],
  ['the first silence is a miss', lease(), silence, missed(1)],
  ['an error is a miss', lease(), error, missed(1)],
  ['unproven silence changes no active lease', lease(), unproven, 'unchanged'],
  ['unproven silence is kept as the last probe of an expired lease', lease(expired), unproven, expired],
  ['the second miss counts after an interval', lease(missed(1, 10_000)), silence, missed(2)],
  ['the second miss counts after half an interval', lease(missed(1, 5_000)), silence, missed(2)],
  ['a second delivery of one tick counts no second miss', lease(missed(1, 4_999)), silence, 'unchanged'],
  ['a miss three intervals ago counts', lease(missed(1, 30_000)), silence, missed(2)],
  ['a miss more than three intervals ago is forgotten', lease(missed(1, 30_001)), silence, missed(1)],
  ['a miss without a date is forgotten', lease({ misses: 1 }), silence, missed(1)],
  ['a miss by a clock far ahead is forgotten', lease(missed(1, -30_001)), silence, missed(1)],
  ['a third miss is dated while the lease is active', lease(missed(2, 10_000)), silence, missed(2)],
  [
    'a miss after the expiry follows two misses before it',
    lease({ ...missed(2, 10_000), ...expired }),
    silence,
    { ...missed(2), ...expired },
  ],
  [
    'two misses long before the expiry are forgotten',
    lease({ ...missed(2, 30_001), ...expired }),
    silence,
    { ...missed(1), ...expired },
  ],
  ['a removed address that misses again is not written', lease(downFor(HALF_HOUR_MS)), silence, 'unchanged'],
  [
    'a shutdown ends an active lease at once',
    lease(),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS, state: 'shuttingDown' },
  ],
  ['a shutdown is written once', shuttingDown, shutsDown, 'unchanged'],
  ['a shutdown is written once at the expiry, too', { ...shuttingDown, expiresAtMs: NOW_MS }, shutsDown, 'unchanged'],
  [
    'a shutdown of a removed address is stored',
    lease(downFor(5_000)),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS - 5_000, state: 'shuttingDown' },
  ],
  [
    'a shutdown removes an address that was seen to shut down without a miss',
    lease({ ...expired, seenDown: true }),
    shutsDown,
    { ...missed(2), ...expired, state: 'shuttingDown' },
  ],
  ['a 200 refreshes the lease of a server that shut down', shuttingDown, ready, refreshed(4)],
  ['a 401 does not bring back a server that shuts down', shuttingDown, alive, 'unchanged'],
  ['a server that shuts down and answers an error still does', shuttingDown, error, 'unchanged'],
  ['silence ends a shutdown', shuttingDown, silence, { ...expired, ...missed(2), state: 'leased' }],
  ['unproven silence does not end a shutdown', shuttingDown, unproven, 'unchanged'],
  ['a 200 does not end a withdrawal', lease(until), ready, 'unchanged'],
  ['a 401 does not end a withdrawal', lease(until), alive, 'unchanged'],
  ['a shutdown is seen during a withdrawal', lease(until), shutsDown, { ...until, seenDown: true }],
  ['an error is seen during a withdrawal', lease(until), error, { ...until, seenDown: true }],
  ['silence is seen during a withdrawal', lease(until), silence, { ...until, seenDown: true }],
  ['unproven silence does not count during a withdrawal', lease(until), unproven, 'unchanged'],
  ['a late answer does not count during a withdrawal', lease({ ...until, lateSinceMs: 0 }), late, 'unchanged'],
  ['a withdrawn server is seen down once', lease({ ...until, seenDown: true }), silence, 'unchanged'],
  [
    'a 200 ends the withdrawal of a server that was seen down',
    lease({ ...until, seenDown: true }),
    ready,
    refreshed(4),
  ],
  [
    'a 401 does not end the withdrawal of a server that was seen down',
    lease({ ...until, seenDown: true }),
    alive,
    'unchanged',
  ],
  ['a 200 refreshes the lease after a withdrawal', lease(over), ready, refreshed(4)],
  ['a 401 refreshes the lease after a withdrawal', lease({ ...over, seenDown: true }), alive, refreshed(4)],
  ['a miss after a withdrawal counts', lease({ ...over, ...expired }), error, { ...over, ...expired, ...missed(1) }],
  [
    'a shutdown after a withdrawal ends the lease',
    lease(over),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS, state: 'shuttingDown' },
  ],
];

const LATE: readonly Row[] = [
  ['the first late answer is dated', lease(), late, { lateSinceMs: NOW_MS }],
  ['the second late answer counts no miss', lease({ lateSinceMs: NOW_MS - 14_999 }), late, 'unchanged'],
  [
    'the third late answer is a miss',
    lease({ lateSinceMs: NOW_MS - 15_000 }),
    late,
    { lateSinceMs: NOW_MS - 15_000, ...missed(1) },
  ],
  [
    'the fourth late answer is the second miss',
    lease({ lateSinceMs: NOW_MS - 30_000, ...missed(1, 10_000), ...expired }),
    late,
    { lateSinceMs: NOW_MS - 30_000, ...missed(2), ...expired },
  ],
  ['an answer ends the lateness', lease({ lateSinceMs: NOW_MS - 30_000, ...missed(1) }), ready, refreshed(4)],
  [
    'late answers end a shutdown as silence does',
    lease({ ...expired, ...missed(2), seenDown: true, lateSinceMs: 0 }),
    late,
    { ...expired, ...missed(2), lateSinceMs: 0, state: 'leased' },
  ],
  ['late answers of an unknown address are not stored', undefined, late, 'unchanged'],
];

describe('a probe of the tick', () => {
  test.each([...PROBED, ...LATE])('%s', (_title, before = newLease(ADDRESS), answer, after) => {
    const next = nextLease(before, answer, NOW_MS);
    if (after === 'unchanged') expect(next).toBe(before);
    else {
      const isDated = after.lateSinceMs === NOW_MS;
      expect(next).toEqual(lease({ ...after, ...(!isDated && { lastProbe: answer.lastProbe ?? '' }) }));
    }
  });

  test('a probe of the tick keeps the host name of the address', () => {
    expect(nextLease(newLease(ADDRESS), { ...ready, host: 'api.example.com' }, NOW_MS).host).toBe('api.example.com');
  });
});

describe('an agent', () => {
  const held = lease({ source: 'agent' });
  const agents = (given: Partial<LeaseFields>) => lease({ source: 'agent', ...given });
  const down = agents({ ...expired, misses: 2, seenDown: true });

  test.each<readonly [string, Lease | undefined, ServerAnswer['answer'], Partial<LeaseFields> | 'unchanged']>([
    ['takes a lease with a 200', undefined, 'ready', refreshed(1)],
    ['takes over a lease that was probed', lease({ lastProbe: 'answered 200' }), 'ready', refreshed(4)],
    ['does not end a withdrawal with a 200', agents(until), 'ready', 'unchanged'],
    ['sees the silence of its server during a withdrawal', agents(until), 'silence', { ...until, seenDown: true }],
    ['lets its lease expire when its server is silent', held, 'silence', 'unchanged'],
    ['lets its lease expire when its server answers an error', held, 'error', 'unchanged'],
    ['ends its lease at a shutdown', held, 'shuttingDown', { ...missed(2), expiresAtMs: NOW_MS, seenDown: true }],
    ['forgets a shutdown when its server is silent', down, 'silence', { ...expired, misses: 2, state: 'leased' }],
  ])('%s', (_title, before = newLease(ADDRESS), answer, after) => {
    const next = nextLease(before, ofAgent(answer), NOW_MS);
    if (after === 'unchanged') expect(next).toBe(before);
    else expect(next).toEqual(agents(after));
  });
});

describe('a withdrawal', () => {
  const untilMs = NOW_MS + 60_000;

  test.each<readonly [string, Lease, Partial<LeaseFields>]>([
    ['keeps the counted misses', lease(missed(1)), { ...missed(1), ...until }],
    ['stores a lease for an unknown address', newLease(ADDRESS), { generation: 0, expiresAtMs: 0, ...until }],
    [
      'keeps that the server was seen down if it is repeated',
      lease({ ...until, seenDown: true }),
      { ...until, seenDown: true },
    ],
    [
      'keeps a later end if it is repeated',
      lease({ withdrawnUntilMs: untilMs + 1 }),
      { withdrawnUntilMs: untilMs + 1 },
    ],
    ['forgets that the server was seen down during an earlier withdrawal', lease({ ...over, seenDown: true }), until],
    [
      'does not count an earlier shutdown of the server as seen down',
      shuttingDown,
      { ...missed(2), ...until, expiresAtMs: NOW_MS },
    ],
    [
      'ends a lease that expired now, while one miss has not removed the address',
      lease({ ...expired, ...missed(1) }),
      { ...missed(1), ...until, expiresAtMs: NOW_MS },
    ],
    [
      'ends a lease that expired when the second miss removed the address',
      lease({ ...missed(2), expiresAtMs: PAST_MS - 2, missedAtMs: PAST_MS - 1 }),
      { ...missed(2), ...until, expiresAtMs: PAST_MS - 1, missedAtMs: PAST_MS - 1 },
    ],
    ['keeps the end of the lease if it is repeated', lease({ ...until, ...expired }), { ...until, ...expired }],
  ])('%s', (_title, before, after) => {
    expect(withdrawn(before, { untilMs }, NOW_MS)).toEqual(lease(after));
  });

  test('a withdrawal ends the lease if the server itself shuts down', () => {
    const released = { ...until, seenDown: true };
    const going = { untilMs, goingDown: true };
    expect(withdrawn(lease(), going, NOW_MS)).toEqual(lease({ ...released, expiresAtMs: NOW_MS }));
    expect(withdrawn(lease({ ...until, ...expired }), going, NOW_MS)).toEqual(lease({ ...released, ...expired }));
  });
});

describe('the published addresses', () => {
  const agent = { source: 'agent' } as const;
  const isPublished = (given: Partial<LeaseFields>) =>
    publishedAddresses([lease(given)], [{ address: ADDRESS }], NOW_MS).length > 0;

  test.each<[string, Partial<LeaseFields>]>([
    ['an address with a valid lease', {}],
    ['a valid lease with two misses', { misses: 2 }],
    ['an expired lease with one miss: our own network may have failed', { ...expired, misses: 1 }],
    ['an expired lease without a miss: our own network may have failed', { expiresAtMs: PAST_MS - 2 * HALF_HOUR_MS }],
    ['an expired lease with two misses from before the expiry', { ...missed(2, 10_000), ...expired }],
    ["an agent's valid lease", agent],
    ["an agent's valid lease after its withdrawal", { ...agent, withdrawnUntilMs: NOW_MS }],
    ["an agent's expired lease without a miss", { ...agent, ...expired }],
    ['an address that left the spec while its lease is valid', { address: OTHER }],
  ])('the published addresses contain %s', (_name, given) => expect(isPublished(given)).toBe(true));

  test.each<[string, Partial<LeaseFields>]>([
    ['an expired lease with two misses', { ...expired, misses: 2 }],
    ['an expired lease with two misses, the last after the expiry', { ...missed(2), ...expired }],
    ['a lease that was never refreshed', { generation: 0, ...expired }],
    ['a withdrawn address', { withdrawnUntilMs: NOW_MS + 1 }],
    ['an address after its withdrawal by the lease from before it', { withdrawnUntilMs: NOW_MS }],
    ['an address after its withdrawal with an expired lease', { ...expired, withdrawnUntilMs: NOW_MS }],
    [
      'an address after its withdrawal that never answered',
      { generation: 0, expiresAtMs: 0, withdrawnUntilMs: NOW_MS },
    ],
    ["an agent's expired lease with two misses", { ...agent, ...expired, misses: 2 }],
    ["an agent's withdrawn address", { ...agent, withdrawnUntilMs: NOW_MS + 1 }],
    ["an agent's expired lease of an address outside the spec", { address: OTHER, ...agent, ...expired }],
    ['an address that left the spec after its lease expired', { address: OTHER, ...expired }],
  ])('the published addresses do not contain %s', (_name, given) => expect(isPublished(given)).toBe(false));

  test('the addresses are in byte order', () => {
    const leases = ['10.0.0.2', '10.0.0.10', '10.0.0.1'].map((address) => lease({ address }));
    expect(publishedAddresses(leases, [], NOW_MS)).toEqual(['10.0.0.1', '10.0.0.10', '10.0.0.2']);
  });

  test('the published addresses exclude those without a live lease; with the master-count reconciler, only those that reported their shutdown', () => {
    const leases = [lease(), lease({ address: OTHER, misses: 2 }), lease({ address: '10.0.0.3', seenDown: true })];
    expect(excludedAddresses(leases, [ADDRESS], 'lease', NOW_MS)).toEqual([OTHER, '10.0.0.3']);
    expect(excludedAddresses(leases, [ADDRESS], 'master-count', NOW_MS)).toEqual(['10.0.0.3']);
  });
});
