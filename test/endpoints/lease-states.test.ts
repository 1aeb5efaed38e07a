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

/** Returns an answer of this kind to a probe of a tick, with an interval of 10 s. */
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
/** The silence of all addresses. It may be caused by our own network, so it does not prove that the server is down. */
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
  ['silence of all addresses does not change an active lease', lease(), unproven, 'unchanged'],
  ['silence of all addresses is stored as the last probe of an expired lease', lease(expired), unproven, expired],
  ['the second miss counts after an interval', lease(missed(1, 10_000)), silence, missed(2)],
  ['the second miss counts after half an interval', lease(missed(1, 5_000)), silence, missed(2)],
  ['a second delivery of one tick counts no second miss', lease(missed(1, 4_999)), silence, 'unchanged'],
  ['a miss three intervals ago counts', lease(missed(1, 30_000)), silence, missed(2)],
  ['a miss more than three intervals ago is forgotten', lease(missed(1, 30_001)), silence, missed(1)],
  ['an earlier miss without a date is ignored', lease({ misses: 1 }), silence, missed(1)],
  ['an earlier miss with a date far in the future is ignored', lease(missed(1, -30_001)), silence, missed(1)],
  ['a third miss gets a new date while the lease is active', lease(missed(2, 10_000)), silence, missed(2)],
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
  ['another miss of a removed address is not stored', lease(downFor(HALF_HOUR_MS)), silence, 'unchanged'],
  [
    'a shutdown ends an active lease at once',
    lease(),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS, state: 'shuttingDown' },
  ],
  ['a repeated shutdown is not stored again', shuttingDown, shutsDown, 'unchanged'],
  [
    'a repeated shutdown at the expiry of the lease is not stored again',
    { ...shuttingDown, expiresAtMs: NOW_MS },
    shutsDown,
    'unchanged',
  ],
  [
    'a shutdown of a removed address is stored',
    lease(downFor(5_000)),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS - 5_000, state: 'shuttingDown' },
  ],
  [
    'a shutdown removes an address that was seen down but has no miss',
    lease({ ...expired, seenDown: true }),
    shutsDown,
    { ...missed(2), ...expired, state: 'shuttingDown' },
  ],
  ['a 200 refreshes the lease of a server that shut down', shuttingDown, ready, refreshed(4)],
  ['a 401 does not end a shutdown', shuttingDown, alive, 'unchanged'],
  ['an error does not end a shutdown', shuttingDown, error, 'unchanged'],
  ['silence ends a shutdown', shuttingDown, silence, { ...expired, ...missed(2), state: 'leased' }],
  ['silence of all addresses does not end a shutdown', shuttingDown, unproven, 'unchanged'],
  ['a 200 does not end a withdrawal', lease(until), ready, 'unchanged'],
  ['a 401 does not end a withdrawal', lease(until), alive, 'unchanged'],
  ['a shutdown during a withdrawal is stored as seen down', lease(until), shutsDown, { ...until, seenDown: true }],
  ['an error during a withdrawal is stored as seen down', lease(until), error, { ...until, seenDown: true }],
  ['silence during a withdrawal is stored as seen down', lease(until), silence, { ...until, seenDown: true }],
  ['silence of all addresses does not count during a withdrawal', lease(until), unproven, 'unchanged'],
  ['a late answer does not count during a withdrawal', lease({ ...until, lateSinceMs: 0 }), late, 'unchanged'],
  [
    'another silence of a withdrawn server that was seen down is not stored',
    lease({ ...until, seenDown: true }),
    silence,
    'unchanged',
  ],
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
  ['the time of the first late answer is stored', lease(), late, { lateSinceMs: NOW_MS }],
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
  [
    'an answer in time ends a series of late answers',
    lease({ lateSinceMs: NOW_MS - 30_000, ...missed(1) }),
    ready,
    refreshed(4),
  ],
  [
    'late answers end a shutdown as silence does',
    lease({ ...expired, ...missed(2), seenDown: true, lateSinceMs: 0 }),
    late,
    { ...expired, ...missed(2), lateSinceMs: 0, state: 'leased' },
  ],
  ['late answers of an unknown address are not stored', undefined, late, 'unchanged'],
];

describe('a probe by a tick', () => {
  test.each([...PROBED, ...LATE])(
    'a lease follows the rule that %s',
    (_title, before = newLease(ADDRESS), answer, after) => {
      const next = nextLease(before, answer, NOW_MS);
      if (after === 'unchanged') expect(next).toBe(before);
      else {
        const isDated = after.lateSinceMs === NOW_MS;
        expect(next).toEqual(lease({ ...after, ...(!isDated && { lastProbe: answer.lastProbe ?? '' }) }));
      }
    },
  );

  test('a probe by a tick keeps the host name of the address', () => {
    expect(nextLease(newLease(ADDRESS), { ...ready, host: 'api.example.com' }, NOW_MS).host).toBe('api.example.com');
  });
});

describe('an agent', () => {
  const held = lease({ source: 'agent' });
  const agents = (given: Partial<LeaseFields>) => lease({ source: 'agent', ...given });
  const down = agents({ ...expired, misses: 2, seenDown: true });

  test.each<readonly [string, Lease | undefined, ServerAnswer['answer'], Partial<LeaseFields> | 'unchanged']>([
    ['takes a lease with a 200', undefined, 'ready', refreshed(1)],
    ['takes over the lease of a probed server', lease({ lastProbe: 'answered 200' }), 'ready', refreshed(4)],
    ['does not end a withdrawal with a 200', agents(until), 'ready', 'unchanged'],
    [
      'stores the silence of its server during a withdrawal as seen down',
      agents(until),
      'silence',
      { ...until, seenDown: true },
    ],
    ['lets its lease expire when its server is silent', held, 'silence', 'unchanged'],
    ['lets its lease expire when its server answers an error', held, 'error', 'unchanged'],
    ['ends its lease at a shutdown', held, 'shuttingDown', { ...missed(2), expiresAtMs: NOW_MS, seenDown: true }],
    ['ends the shutdown state when its server is silent', down, 'silence', { ...expired, misses: 2, state: 'leased' }],
  ])('an agent %s', (_title, before = newLease(ADDRESS), answer, after) => {
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
      'that is repeated keeps the mark that the server was seen down',
      lease({ ...until, seenDown: true }),
      { ...until, seenDown: true },
    ],
    ['that is repeated keeps a later end', lease({ withdrawnUntilMs: untilMs + 1 }), { withdrawnUntilMs: untilMs + 1 }],
    [
      'removes the mark that the server was seen down during an earlier withdrawal',
      lease({ ...over, seenDown: true }),
      until,
    ],
    [
      'does not count an earlier shutdown of the server as seen down',
      shuttingDown,
      { ...missed(2), ...until, expiresAtMs: NOW_MS },
    ],
    [
      'sets the end of an expired lease to now if one miss has not yet removed the address',
      lease({ ...expired, ...missed(1) }),
      { ...missed(1), ...until, expiresAtMs: NOW_MS },
    ],
    [
      'sets the end of an expired lease to the time of the second miss, which removed the address',
      lease({ ...missed(2), expiresAtMs: PAST_MS - 2, missedAtMs: PAST_MS - 1 }),
      { ...missed(2), ...until, expiresAtMs: PAST_MS - 1, missedAtMs: PAST_MS - 1 },
    ],
    ['that is repeated keeps the end of the lease', lease({ ...until, ...expired }), { ...until, ...expired }],
  ])('a withdrawal %s', (_title, before, after) => {
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
    ['an address with a valid lease and two misses', { misses: 2 }],
    [
      'an address with an expired lease and one miss, because our own network may have failed',
      { ...expired, misses: 1 },
    ],
    [
      'an address with an expired lease without a miss, because our own network may have failed',
      { expiresAtMs: PAST_MS - 2 * HALF_HOUR_MS },
    ],
    ['an address with an expired lease and two misses from before the expiry', { ...missed(2, 10_000), ...expired }],
    ['an address with a valid lease of an agent', agent],
    ['an address with a valid lease of an agent after its withdrawal', { ...agent, withdrawnUntilMs: NOW_MS }],
    ['an address with an expired lease of an agent without a miss', { ...agent, ...expired }],
    ['an address that left the spec while its lease is valid', { address: OTHER }],
  ])('the published addresses contain %s', (_name, given) => expect(isPublished(given)).toBe(true));

  test.each<[string, Partial<LeaseFields>]>([
    ['an address with an expired lease and two misses', { ...expired, misses: 2 }],
    ['an address with an expired lease and two misses, one of them after the expiry', { ...missed(2), ...expired }],
    ['an address whose lease was never refreshed', { generation: 0, ...expired }],
    ['a withdrawn address', { withdrawnUntilMs: NOW_MS + 1 }],
    ['an address after its withdrawal because of a lease from before the withdrawal', { withdrawnUntilMs: NOW_MS }],
    ['an address after its withdrawal with an expired lease', { ...expired, withdrawnUntilMs: NOW_MS }],
    [
      'an address that never answered after its withdrawal',
      { generation: 0, expiresAtMs: 0, withdrawnUntilMs: NOW_MS },
    ],
    ['an address with an expired lease of an agent and two misses', { ...agent, ...expired, misses: 2 }],
    ['a withdrawn address of an agent', { ...agent, withdrawnUntilMs: NOW_MS + 1 }],
    ['an address outside the spec with an expired lease of an agent', { address: OTHER, ...agent, ...expired }],
    ['an address that left the spec after its lease expired', { address: OTHER, ...expired }],
  ])('the published addresses do not contain %s', (_name, given) => expect(isPublished(given)).toBe(false));

  test('the published addresses are in byte order', () => {
    const leases = ['10.0.0.2', '10.0.0.10', '10.0.0.1'].map((address) => lease({ address }));
    expect(publishedAddresses(leases, [], NOW_MS)).toEqual(['10.0.0.1', '10.0.0.10', '10.0.0.2']);
  });

  test('the reconciler "lease" excludes addresses without a live lease, and "master-count" only those that are withdrawn or shut down', () => {
    const [shutDown, withdrawn] = ['10.0.0.3', '10.0.0.4'] as const;
    const leases = [
      lease(),
      lease({ address: OTHER, misses: 2 }),
      lease({ address: shutDown, seenDown: true }),
      lease({ address: withdrawn, ...until }),
    ];
    expect(excludedAddresses(leases, [ADDRESS], 'lease', NOW_MS)).toEqual([OTHER, shutDown, withdrawn]);
    expect(excludedAddresses(leases, [ADDRESS], 'master-count', NOW_MS)).toEqual([shutDown, withdrawn]);
  });
});
