import { describe, expect, test } from '@jest/globals';
import type { Lease } from '../../lib/cluster/lease.ts';
import { decideHeartbeat } from '../../lib/endpoints/heartbeat-decision.ts';
import { type ProbeReply, probeOutcome } from '../../lib/endpoints/probe-outcome.ts';

const NOW = 1_000_000;
const LEASE_MS = 15_000;
const answer = (status: number, body = ''): ProbeReply => ({ kind: 'status', status, body });
const READY = answer(200);
const UNAUTHORIZED = answer(401);
const BROKEN = answer(503);
const SHUTTING_DOWN = answer(500, '[-]shutdown failed: reason withheld\n');
const UNKNOWN: ProbeReply = { kind: 'unknown', message: 'this process was busy' };
const SILENCE: ProbeReply = { kind: 'silence', message: 'connect ECONNREFUSED' };

const held: Lease = {
  address: '203.0.113.10',
  generation: 4,
  source: 'agent',
  expiresAtMs: NOW + 5_000,
  misses: 0,
  seenDown: false,
};
const probed: Lease = { ...held, source: 'probe', lastProbe: 'answered 200' };
const withdrawn: Lease = { ...held, withdrawnUntilMs: NOW + 60_000 };
const wasWithdrawn: Lease = { ...held, withdrawnUntilMs: NOW };
const wentDown: Lease = { ...withdrawn, seenDown: true };
const saidGoodbye: Lease = { ...held, expiresAtMs: NOW - 1, misses: 2, seenDown: true };

function decide(lease: Lease | undefined, said: ProbeReply | undefined) {
  const outcome = said && probeOutcome(said);
  return decideHeartbeat({ address: '203.0.113.10', lease, outcome, nowMs: NOW, leaseMs: LEASE_MS });
}

function fresh(generation: number): Lease {
  return { ...held, generation, expiresAtMs: NOW + LEASE_MS };
}

describe('a heartbeat', () => {
  test.each([
    { name: 'takes a lease when its server is ready', lease: undefined, said: READY, write: fresh(1) },
    { name: 'refreshes its lease', lease: held, said: READY, write: fresh(5) },
    { name: 'takes over a lease that was probed', lease: probed, said: READY, write: fresh(5) },
    { name: 'refreshes without asking', lease: held, said: undefined, write: fresh(5) },
    { name: 'takes 401 for a sign of life', lease: held, said: UNAUTHORIZED, write: fresh(5) },
    { name: 'takes a lease on a 401, too', lease: undefined, said: UNAUTHORIZED, write: fresh(1) },
    { name: 'goes on when a withdrawal is over', lease: wasWithdrawn, said: READY, write: fresh(5) },
    { name: 'ends a withdrawal once the server was down and is back', lease: wentDown, said: READY, write: fresh(5) },
    { name: 'ends the withdrawal of its own end without asking', lease: wentDown, said: undefined, write: fresh(5) },
    { name: 'comes back with a 200 after the server had shut down', lease: saidGoodbye, said: READY, write: fresh(5) },
  ])('$name', ({ lease, said, write }) => {
    expect(decide(lease, said)).toEqual({ state: 'held', write });
  });

  test.each([
    { name: 'a 200', said: READY },
    { name: 'a 401', said: UNAUTHORIZED },
    { name: 'nothing asked', said: undefined },
  ])('$name does not end a withdrawal', ({ said }) => {
    expect(decide(withdrawn, said)).toEqual({ state: 'withdrawn' });
  });

  test.each([
    { name: 'silence', said: SILENCE },
    { name: 'a failed check', said: BROKEN },
    { name: 'shutting down', said: SHUTTING_DOWN },
  ])('$name while withdrawn is remembered once', ({ said }) => {
    expect(decide(withdrawn, said)).toEqual({ state: 'withdrawn', write: wentDown });
    expect(decide(wentDown, said)).toEqual({ state: 'withdrawn' });
  });

  test.each([
    { name: 'silence lets the lease run out', lease: held, said: SILENCE },
    { name: 'an answer that is not known lets the lease run out', lease: held, said: UNKNOWN },
    { name: 'an answer that is not known changes no mark', lease: saidGoodbye, said: UNKNOWN },
    { name: 'a failed check lets the lease run out', lease: held, said: BROKEN },
    { name: 'silence takes no lease', lease: undefined, said: SILENCE },
    { name: 'a 401 does not bring back a server that reported its shutdown', lease: saidGoodbye, said: UNAUTHORIZED },
    { name: 'shutting down is written once', lease: saidGoodbye, said: SHUTTING_DOWN },
    {
      name: 'an end that is now is not written again',
      lease: { ...saidGoodbye, expiresAtMs: NOW },
      said: SHUTTING_DOWN,
    },
  ])('$name', ({ lease, said }) => {
    expect(decide(lease, said)).toEqual({ state: 'down' });
  });

  test.each([
    { name: 'an active lease', lease: held, expiresAtMs: NOW },
    { name: 'an active lease that was marked', lease: { ...held, seenDown: true }, expiresAtMs: NOW },
    { name: 'an expired lease', lease: { ...held, expiresAtMs: NOW - 1 }, expiresAtMs: NOW - 1 },
  ])('of a server that reports its shutdown ends $name at once', ({ lease, expiresAtMs }) => {
    const gone = { ...held, expiresAtMs, misses: 2, missedAtMs: NOW, seenDown: true };
    expect(decide(lease, SHUTTING_DOWN)).toEqual({ state: 'down', write: gone });
  });

  test('forgets after silence that the server was shutting down: what answers next is another', () => {
    expect(decide(saidGoodbye, SILENCE)).toEqual({ state: 'down', write: { ...saidGoodbye, seenDown: false } });
  });
});
