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

/** Returns an answer of this kind to a probe by a tick. The interval of the ticks is 10 s. */
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
/**
 * The silence of a server while no other server answers. Our own network might be the cause, so this silence does not show that
 * the server is down.
 */
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
  ['the answer 200 of an address without a lease creates its lease', undefined, ready, refreshed(1)],
  ['the answer 401 of an address without a lease creates its lease', undefined, alive, refreshed(1)],
  ['an error answer of an address without a lease is not stored', undefined, error, 'unchanged'],
  ['silence of an address without a lease is not stored', undefined, silence, 'unchanged'],
  ['a reported shutdown of an address without a lease is not stored', undefined, shutsDown, 'unchanged'],
  ['a 200 refreshes an active lease', lease(), ready, refreshed(4)],
  ['a 401 refreshes an active lease', lease(), alive, refreshed(4)],
  ['a 200 refreshes an expired lease and resets its misses', lease({ ...expired, misses: 2 }), ready, refreshed(4)],
  ['the first silence is a miss', lease(), silence, missed(1)],
  ['an error is a miss', lease(), error, missed(1)],
  ['silence of all addresses does not change an active lease', lease(), unproven, 'unchanged'],
  ['silence of all addresses is stored as the last probe of an expired lease', lease(expired), unproven, expired],
  ['a miss an interval after the first one is the second miss', lease(missed(1, 10_000)), silence, missed(2)],
  ['a miss half an interval after the first one is the second miss', lease(missed(1, 5_000)), silence, missed(2)],
  ['if a tick is delivered twice, only one miss is counted', lease(missed(1, 4_999)), silence, 'unchanged'],
  ['the miss after one of three intervals ago is the second', lease(missed(1, 30_000)), silence, missed(2)],
  [
    'the miss after one of more than three intervals ago is the first again',
    lease(missed(1, 30_001)),
    silence,
    missed(1),
  ],
  ['an earlier miss without a date is ignored', lease({ misses: 1 }), silence, missed(1)],
  ['an earlier miss with a date far in the future is ignored', lease(missed(1, -30_001)), silence, missed(1)],
  [
    'a third miss while the lease is active changes only the date of the last miss',
    lease(missed(2, 10_000)),
    silence,
    missed(2),
  ],
  [
    'a miss after the expiry of the lease, shortly after two earlier misses, gets the date of now',
    lease({ ...missed(2, 10_000), ...expired }),
    silence,
    { ...missed(2), ...expired },
  ],
  [
    'a miss after the expiry of the lease, long after two earlier misses, is the first again',
    lease({ ...missed(2, 30_001), ...expired }),
    silence,
    { ...missed(1), ...expired },
  ],
  ['another miss of a removed address is not stored', lease(downFor(HALF_HOUR_MS)), silence, 'unchanged'],
  [
    'a reported shutdown ends an active lease at once',
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
    'a reported shutdown of an address that was removed is stored',
    lease(downFor(5_000)),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS - 5_000, state: 'shuttingDown' },
  ],
  [
    'a reported shutdown counts two misses if the server was seen down and its expired lease has no miss',
    lease({ ...expired, seenDown: true }),
    shutsDown,
    { ...missed(2), ...expired, state: 'shuttingDown' },
  ],
  ['a 200 refreshes the lease of a server that shut down', shuttingDown, ready, refreshed(4)],
  ['a 401 does not end the state shuttingDown', shuttingDown, alive, 'unchanged'],
  ['an error does not end the state shuttingDown', shuttingDown, error, 'unchanged'],
  ['silence ends the state shuttingDown', shuttingDown, silence, { ...expired, ...missed(2), state: 'leased' }],
  ['silence of all addresses does not end the state shuttingDown', shuttingDown, unproven, 'unchanged'],
  ['a 200 does not end a withdrawal', lease(until), ready, 'unchanged'],
  ['a 401 does not end a withdrawal', lease(until), alive, 'unchanged'],
  [
    'after a shutdown that is reported during a withdrawal, the server is stored as seen down',
    lease(until),
    shutsDown,
    { ...until, seenDown: true },
  ],
  [
    'after an error during a withdrawal, the server is stored as seen down',
    lease(until),
    error,
    { ...until, seenDown: true },
  ],
  [
    'after silence during a withdrawal, the server is stored as seen down',
    lease(until),
    silence,
    { ...until, seenDown: true },
  ],
  [
    'after silence of all addresses during a withdrawal, the server is not stored as seen down',
    lease(until),
    unproven,
    'unchanged',
  ],
  [
    'after a late answer during a withdrawal, the server is not stored as seen down',
    lease({ ...until, lateSinceMs: 0 }),
    late,
    'unchanged',
  ],
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
  ['a 200 after the end of a withdrawal refreshes the lease', lease(over), ready, refreshed(4)],
  ['a 401 after the end of a withdrawal refreshes the lease', lease({ ...over, seenDown: true }), alive, refreshed(4)],
  [
    'a miss after the end of a withdrawal is counted',
    lease({ ...over, ...expired }),
    error,
    { ...over, ...expired, ...missed(1) },
  ],
  [
    'a reported shutdown after the end of a withdrawal ends the lease',
    lease(over),
    shutsDown,
    { ...missed(2), expiresAtMs: NOW_MS, state: 'shuttingDown' },
  ],
];

const LATE: readonly Row[] = [
  ['the time of the first late answer is stored', lease(), late, { lateSinceMs: NOW_MS }],
  ['the second late answer is no miss', lease({ lateSinceMs: NOW_MS - 14_999 }), late, 'unchanged'],
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
    'late answers end the state shuttingDown, as silence does',
    lease({ ...expired, ...missed(2), seenDown: true, lateSinceMs: 0 }),
    late,
    { ...expired, ...missed(2), lateSinceMs: 0, state: 'leased' },
  ],
  ['late answers of an address without a lease are not stored', undefined, late, 'unchanged'],
];

describe('a probe by a tick', () => {
  test.each([...PROBED, ...LATE])('nextLease: %s', (_title, before = newLease(ADDRESS), answer, after) => {
    const next = nextLease(before, answer, NOW_MS);
    if (after === 'unchanged') expect(next).toBe(before);
    else {
      const isDated = after.lateSinceMs === NOW_MS;
      expect(next).toEqual(lease({ ...after, ...(!isDated && { lastProbe: answer.lastProbe ?? '' }) }));
    }
  });

  test('the lease after a probe by a tick contains the host name of the address', () => {
    expect(nextLease(newLease(ADDRESS), { ...ready, host: 'api.example.com' }, NOW_MS).host).toBe('api.example.com');
  });
});

describe('an agent', () => {
  const held = lease({ source: 'agent' });
  const agents = (given: Partial<LeaseFields>) => lease({ source: 'agent', ...given });
  const down = agents({ ...expired, misses: 2, seenDown: true });

  test.each<readonly [string, Lease | undefined, ServerAnswer['answer'], Partial<LeaseFields> | 'unchanged']>([
    ['creates the lease of its server when the server answers 200', undefined, 'ready', refreshed(1)],
    ['takes over the lease of a probed server', lease({ lastProbe: 'answered 200' }), 'ready', refreshed(4)],
    ['does not end the withdrawal of its server when the server answers 200', agents(until), 'ready', 'unchanged'],
    [
      'stores that its server was seen down when the server is silent during a withdrawal',
      agents(until),
      'silence',
      { ...until, seenDown: true },
    ],
    ['lets its lease expire when its server is silent', held, 'silence', 'unchanged'],
    ['lets its lease expire when its server answers an error', held, 'error', 'unchanged'],
    [
      'ends its lease when its server reports a shutdown',
      held,
      'shuttingDown',
      { ...missed(2), expiresAtMs: NOW_MS, seenDown: true },
    ],
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
    [
      'stores a lease without a refresh for an address without a lease',
      newLease(ADDRESS),
      { generation: 0, expiresAtMs: 0, ...until },
    ],
    [
      'that is repeated keeps the mark that the server was seen down',
      lease({ ...until, seenDown: true }),
      { ...until, seenDown: true },
    ],
    [
      'that is repeated with an earlier end keeps the later end',
      lease({ withdrawnUntilMs: untilMs + 1 }),
      { withdrawnUntilMs: untilMs + 1 },
    ],
    [
      'removes the mark that the server was seen down during an earlier withdrawal',
      lease({ ...over, seenDown: true }),
      until,
    ],
    [
      'does not store the server as seen down because of a shutdown before the withdrawal',
      shuttingDown,
      { ...missed(2), ...until, expiresAtMs: NOW_MS },
    ],
    [
      'sets the end of an expired lease to now if the lease has one miss, which has not removed the address',
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

  test('a withdrawal ends the lease if its reason is that the server shuts down', () => {
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
      'an address with an expired lease and one miss, because our own network might have failed',
      { ...expired, misses: 1 },
    ],
    [
      'an address with an expired lease without a miss, because our own network might have failed',
      { expiresAtMs: PAST_MS - 2 * HALF_HOUR_MS },
    ],
    ['an address with an expired lease and two misses from before the expiry', { ...missed(2, 10_000), ...expired }],
    ['an address with a valid lease of an agent', agent],
    [
      'an address whose withdrawal is over and which has a valid lease of an agent',
      { ...agent, withdrawnUntilMs: NOW_MS },
    ],
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
    [
      'an address whose withdrawal is over and which never answered',
      { generation: 0, expiresAtMs: 0, withdrawnUntilMs: NOW_MS },
    ],
    ['an address with an expired lease of an agent and two misses', { ...agent, ...expired, misses: 2 }],
    ['a withdrawn address of an agent', { ...agent, withdrawnUntilMs: NOW_MS + 1 }],
    ['an address outside the spec with an expired lease of an agent', { address: OTHER, ...agent, ...expired }],
    ['an address that was removed from the spec and has an expired lease', { address: OTHER, ...expired }],
  ])('the published addresses do not contain %s', (_name, given) => expect(isPublished(given)).toBe(false));

  test('the published addresses are in byte order', () => {
    const leases = ['10.0.0.2', '10.0.0.10', '10.0.0.1'].map((address) => lease({ address }));
    expect(publishedAddresses(leases, [], NOW_MS)).toEqual(['10.0.0.1', '10.0.0.10', '10.0.0.2']);
  });

  test('the reconciler "lease" excludes all addresses without an active lease, and "master-count" only addresses that are withdrawn or whose server reported a shutdown', () => {
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
