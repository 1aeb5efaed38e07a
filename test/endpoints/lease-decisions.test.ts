import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ApiServerKind } from '../../lib/cluster/cluster-spec.ts';
import type { Lease } from '../../lib/cluster/lease.ts';
import { decideLeases, type LeaseObservation } from '../../lib/endpoints/lease-decisions.ts';
import type { ProbeOutcome } from '../../lib/endpoints/probe-outcome.ts';
import { type ExpectedAddress, knownAddresses, publishedAddresses } from '../../lib/endpoints/published-servers.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { aLease, type LeaseFields } from '../support/put-lease.ts';

const NOW_MS = 100_000_000;
const LEASE_MS = 15_000;
const INTERVAL_MS = 10_000;
const HOUR_MS = 3_600_000;
const ADDRESS = '10.0.0.1';
const OTHER = '10.0.0.2';

function lease(given: Partial<LeaseFields> = {}): Lease {
  return aLease({ address: ADDRESS, generation: 3, expiresAtMs: NOW_MS + 5_000, ...given });
}

function outcome(verdict: ProbeOutcome['verdict']): ProbeOutcome {
  return { verdict, odd: false, detail: verdict };
}

const ready = outcome('ready');
const alive = outcome('alive');
const miss = outcome('silence');
/** The outcome of an answer with a status of 500 or more. */
const error = outcome('error');
const shutsDown = outcome('shuttingDown');
const unknown = outcome('unknown');
const late: ProbeOutcome = { ...unknown, late: true };

function expecting(kind: ApiServerKind = 'server', address = ADDRESS): ExpectedAddress {
  return { address, kind };
}

/** Returns the probe outcomes of the two addresses. */
function answers(own: ProbeOutcome, other: ProbeOutcome) {
  return new Map([
    [ADDRESS, own],
    [OTHER, other],
  ]);
}

/** Returns the changes of leases after a probe of one address of the spec had this answer and another address answered 200. */
function decide(
  known: Lease | undefined,
  answer: ProbeOutcome,
  given: Partial<LeaseObservation> = {},
  kind: ApiServerKind = 'server',
) {
  const changes = decideLeases({
    leases: known === undefined ? [] : [known],
    expected: [expecting(kind)],
    outcomes: answers(answer, ready),
    spec: aClusterSpec(),
    nowMs: NOW_MS,
    triesEveryMs: INTERVAL_MS,
    ...given,
  });
  return [...changes];
}

/** The probe outcomes during an outage of our own network. */
const silent = answers(miss, miss);

const PAST_MS = NOW_MS - 1;
const missed = (misses: number, agoMs = 0) => ({ misses, missedAtMs: NOW_MS - agoMs });
const left = (given: Partial<LeaseFields>) => [[ADDRESS, lease(given)]] as const;
const refreshed = (generation: number) => left({ generation, expiresAtMs: NOW_MS + LEASE_MS });
/** Returns the changes. In each lease, the last probe has the detail of the answer. */
const saying = (answer: ProbeOutcome, changes: readonly (readonly [string, Lease])[]) =>
  changes.map(([address, written]) => [address, { ...written, lastProbe: answer.detail }]);

describe('the decision about a lease after a probe', () => {
  const withdrawn = { withdrawnUntilMs: NOW_MS + 60_000 };
  const seenDown = left({ ...withdrawn, seenDown: true });

  test.each([
    { triesEveryMs: 60_000, agoMs: 180_000, misses: 2 },
    { triesEveryMs: 60_000, agoMs: 180_001, misses: 1 },
    { triesEveryMs: 120_000, agoMs: 300_000, misses: 2 },
  ])(
    'if passes run every $triesEveryMs ms, a lease has $misses misses after a second miss that is $agoMs ms after the first',
    ({ triesEveryMs, agoMs, misses }) => {
      const [change] = decide(lease(missed(1, agoMs)), miss, { triesEveryMs });
      expect(change?.[1]).toMatchObject({ misses });
    },
  );

  test.each([
    {
      title: 'a second miss is counted from half an interval after the first',
      known: missed(1, 5_000),
      answer: miss,
      misses: [2],
    },
    {
      title: 'a second miss within half an interval is not counted',
      known: missed(1, 4_999),
      answer: miss,
      misses: [],
    },
    { title: 'the third late answer is a miss', known: { lateSinceMs: NOW_MS - 15_000 }, answer: late, misses: [1] },
    { title: 'the second late answer is no miss', known: { lateSinceMs: NOW_MS - 14_999 }, answer: late, misses: [] },
    { title: 'a probe that the pass ended early is no miss', known: { lateSinceMs: 0 }, answer: unknown, misses: [] },
  ])('the count of misses follows the rule that $title', ({ known, answer, misses }) => {
    expect(decide(lease(known), answer).map(([, written]) => written?.misses)).toEqual(misses);
  });

  test('a late answer is no miss if the answers of all addresses were late', () => {
    const known = lease({ lateSinceMs: 0, lastProbe: 'unknown' });
    expect(decide(known, late, { outcomes: answers(late, late) })).toEqual([]);
  });

  test('an answer that reports a shutdown refreshes the lease of an address that several servers share', () => {
    expect(decide(lease(), shutsDown, {}, 'shared')).toEqual(saying(shutsDown, refreshed(4)));
  });

  test('a withdrawn server that does not answer is marked as seen down only if another address answers', () => {
    const given = {
      expected: [expecting(), expecting('server', OTHER)],
      outcomes: answers(miss, miss),
    };
    expect(decide(lease(withdrawn), miss, given)).toEqual([]);
    const answered = { ...given, outcomes: new Map(given.outcomes).set(OTHER, alive) };
    expect(decide(lease(withdrawn), miss, answered)).toContainEqual(saying(miss, seenDown)[0]);
  });

  test('a withdrawn server that does not answer is marked as seen down if it is the only probed server', () => {
    const outcomes = new Map([[ADDRESS, miss]]);
    expect(decide(lease(withdrawn), miss, { outcomes })).toEqual(saying(miss, seenDown));
  });

  test('the lease stores the detail of the probe as one short line', () => {
    const detail = `answered 500: etcd\u001b[31m\n\u2028${'😀'.repeat(150)}`;
    const [change] = decide(lease(), { ...miss, detail });
    expect(change?.[1]?.lastProbe).toMatch(/^answered 500: etcd \[31m 😀+\u{fffd}?…$/u);
    expect(change?.[1]?.lastProbe?.length).toBeLessThanOrEqual(200);
    expect(change?.[1]?.lastProbe?.isWellFormed()).toBe(true);
  });

  test.each([
    ['is valid', { expiresAtMs: NOW_MS + 1 }],
    ['is withdrawn', { expiresAtMs: PAST_MS, withdrawnUntilMs: NOW_MS + 1, seenDown: true }],
  ])("a probe does not change an agent's lease that %s", (_name, given) => {
    expect(decide(lease({ source: 'agent', ...given }), ready)).toEqual([]);
    expect(decide(lease({ source: 'agent', ...given }), miss)).toEqual([]);
  });

  test("a probe by a tick refreshes an agent's expired lease if the server answers, and counts a miss if not", () => {
    const known = lease({ source: 'agent', expiresAtMs: PAST_MS });
    expect(decide(known, ready)).toEqual(saying(ready, refreshed(4)));
    expect(decide(known, miss)).toEqual(saying(miss, [[ADDRESS, { ...known, ...missed(1) }]]));
  });

  test.each([
    ['a silent address', 'probe', [], 0],
    ['a silent address, while an agent of another address runs', 'probe', ['agent'], 0],
    ['the address of a stopped agent', 'agent', [], 0],
    ['the address of a stopped agent, while another agent runs', 'agent', ['agent'], 1],
  ] as const)(
    'if no API server answers, the lease of %s (source %s, other leases %j) has %i misses after the probe',
    (_name, source, others, misses) => {
      const known = lease({ source, expiresAtMs: PAST_MS });
      const leases = [known, ...others.map((other) => lease({ address: '10.0.0.3', source: other }))];
      expect(decide(undefined, miss, { leases, outcomes: silent })).toMatchObject([[ADDRESS, { misses }]]);
    },
  );

  test('an error is a miss, whether or not another API server answers', () => {
    const outcomes = new Map([[ADDRESS, error]]);
    expect(decide(lease(), miss, { outcomes })).toMatchObject([[ADDRESS, missed(1)]]);
  });

  test('the lease of a DNS record stores its host name', () => {
    const expected = [{ ...expecting('shared'), host: 'api.example.com' }];
    expect(decide(undefined, ready, { expected })).toMatchObject([[ADDRESS, { host: 'api.example.com' }]]);
  });
});

describe('the deletion of leases', () => {
  const others = { expected: [expecting('server', OTHER)], outcomes: new Map([[OTHER, ready]]) };
  const gone = [ADDRESS, undefined];

  test('the lease of an address that was removed from the spec is deleted at once if another address is live', () => {
    expect(decide(lease(), ready, others)).toContainEqual(gone);
  });

  test('the lease of an address that was removed from the spec is deleted while an agent keeps the lease of another address active', () => {
    const given = { expected: [], leases: [lease(), lease({ address: OTHER, source: 'agent' })] };
    expect(decide(undefined, ready, given)).toEqual([gone]);
  });

  test('the lease of an address that was removed from the spec is kept while no other address is live', () => {
    expect(decide(lease(), ready, { expected: [] })).toEqual([]);
    const silent = { ...others, outcomes: new Map([[OTHER, miss]]) };
    expect(decide(lease(), ready, silent)).toEqual([]);
  });

  test('the lease of an address that was removed from the spec is deleted when the lease expires', () => {
    const known = lease({ expiresAtMs: PAST_MS });
    expect(decide(known, ready, { expected: [] })).toEqual([gone]);
  });

  test('the lease of a withdrawn address that was removed from the spec is kept until the end of the withdrawal', () => {
    expect(decide(lease({ withdrawnUntilMs: NOW_MS + 1 }), ready, others)).not.toContainEqual(gone);
  });

  test('the lease of an address that a host name no longer resolves to is deleted when the lease expires', () => {
    const known = lease({ host: 'api.example.com' });
    const given = { ...others, spec: aClusterSpec({ apiServers: [aHost('api.example.com')] }) };
    expect(decide(known, ready, given)).not.toContainEqual(gone);
    const late = { ...given, nowMs: known.expiresAtMs };
    expect(decide(known, ready, late)).toContainEqual(gone);
    expect(decide(lease({ host: 'gone.example.com' }), ready, given)).toContainEqual(gone);
  });

  test('a lease is deleted an hour after its expiry or the end of its withdrawal', () => {
    const dead = lease({ expiresAtMs: NOW_MS - HOUR_MS, misses: 2 });
    expect(decide(dead, miss)).toEqual([gone]);
    const agent = { ...dead, source: 'agent' as const };
    expect(decide(agent, miss)).toEqual([gone]);
    const withdrawnLater = lease({ ...dead, withdrawnUntilMs: NOW_MS - 1 });
    expect(decide(withdrawnLater, miss)).toEqual([]);
    const remembered = { ...dead, misses: 0, lastProbe: 'silence' };
    expect(decide(remembered, miss, { outcomes: silent })).toEqual([]);
  });
});

test('knownAddresses returns the addresses of the spec, and the addresses with a lease that a host name of the spec resolved to', () => {
  const spec = aClusterSpec({ apiServers: [aServer(ADDRESS), aHost('api.example.com')] });
  const leases = [
    lease({ host: 'api.example.com' }),
    lease({ address: OTHER, host: 'api.example.com' }),
    lease({ address: '10.0.0.3', host: 'gone.example.com' }),
  ];
  expect(knownAddresses(spec, leases)).toMatchObject([
    { address: ADDRESS, kind: 'server' },
    { address: OTHER, kind: 'shared', host: 'api.example.com' },
  ]);
});

describe('leases over many ticks', () => {
  /** Runs ticks that are `gapMs` apart. Returns whether the address is published after each tick. */
  function live(ticks: readonly { answer: ProbeOutcome; gapMs: number }[]): boolean[] {
    let known: Lease | undefined;
    let nowMs = NOW_MS;
    return ticks.map(({ answer, gapMs }) => {
      nowMs += gapMs;
      for (const [, changed] of decide(known, answer, { nowMs })) {
        known = changed;
      }
      return publishedAddresses(known ? [known] : [], [expecting()], nowMs).length > 0;
    });
  }

  const gap = fc.integer({ min: 1, max: HOUR_MS * 3 });
  const anyAnswer = fc
    .constantFrom<ProbeOutcome['verdict']>('ready', 'alive', 'silence', 'shuttingDown')
    .map((v) => outcome(v));

  test('a server that answers every probe is published at every tick, even if ticks are late', () => {
    fc.assert(
      fc.property(fc.array(gap, { minLength: 1 }), (gaps) => {
        expect(live(gaps.map((gapMs) => ({ answer: ready, gapMs }))).every(Boolean)).toBe(true);
      }),
    );
  });

  test('a server that misses only one probe stays published', () => {
    fc.assert(
      fc.property(gap, gap, gap, (one, two, three) => {
        const ticks = [
          { answer: ready, gapMs: one },
          { answer: miss, gapMs: two },
          { answer: ready, gapMs: three },
        ];
        expect(live(ticks)).toEqual([true, true, true]);
      }),
    );
  });

  test('whatever a server answered before, an answer 200 publishes its address, and two unanswered probes then remove the address', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ answer: anyAnswer, gapMs: gap })), (before) => {
        const silent = { answer: miss, gapMs: LEASE_MS };
        const after = live([...before, { answer: ready, gapMs: 10_000 }, silent, silent]);
        expect(after.slice(-3)).toEqual([true, true, false]);
      }),
    );
  });
});
