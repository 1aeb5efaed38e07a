import { expect, test } from '@jest/globals';
import { hasAnswered, probeOutcome, shortDetail } from '../../lib/leases/probe-outcome.ts';

const SHUTTING_DOWN = '[+]ping ok\n[+]etcd ok\n[-]shutdown failed: reason withheld\nreadyz check failed';

const SIX_FAILED = ['a', 'b', 'c', 'd', 'e', 'f'].map((check) => `[-]${check} failed`).join('\n');
const ETCD_FAILED = '[+]ping ok\n[-]etcd failed: reason withheld\n[+]shutdown ok\nreadyz check failed';

test.each([
  [200, 'ok', 'ready'],
  [401, '', 'alive'],
  [403, '', 'alive'],
  [429, '', 'alive'],
  [500, SHUTTING_DOWN, 'shuttingDown'],
  [500, 'internal server error: process is shutting down', 'shuttingDown'],
  [500, ETCD_FAILED, 'error'],
  [500, 'no shutdown failed: today', 'error'],
  [503, SHUTTING_DOWN, 'error'],
  [599, '', 'error'],
  [404, '', 'odd error'],
  [301, '', 'odd error'],
  [204, '', 'odd error'],
  [600, '', 'odd error'],
])('an answer with the status %d and the body %j has the verdict: %s', (status, body, expected) => {
  const outcome = probeOutcome({ kind: 'status', status, body });
  const { verdict, odd, detail } = outcome;
  expect([odd ? `odd ${verdict}` : verdict, hasAnswered(outcome)]).toEqual([expected, true]);
  expect(detail).toContain(`answered ${status}`);
});

test.each([
  { name: 'one failed check', body: ETCD_FAILED, detail: 'answered 500: etcd' },
  { name: 'no failed check', body: 'x', detail: 'answered 500' },
  { name: 'the first five of six failed checks', body: SIX_FAILED, detail: 'answered 500: a, b, c, d, e' },
])('the detail of an answer lists $name', ({ body, detail }) => {
  expect(probeOutcome({ kind: 'status', status: 500, body }).detail).toBe(detail);
});

test('if the answer to a probe might be late only because this process was busy, the probe has the verdict "unknown"', () => {
  const outcome = { verdict: 'unknown', odd: false, late: true, detail: 'not known: busy' };
  expect(probeOutcome({ kind: 'unknown', message: 'busy', late: true })).toEqual(outcome);
});

test('a detail is cut to at most 200 characters', () => {
  const shortOf = (length: number) => shortDetail({ verdict: 'error', odd: false, detail: 'a'.repeat(length) });
  expect([shortOf(200), shortOf(201)]).toEqual(['a'.repeat(200), `${'a'.repeat(199)}…`]);
});

test.each([
  ['silence', 'connect ECONNREFUSED', false, 'no answer: connect ECONNREFUSED'],
  ['tlsFailure', 'self-signed certificate', true, 'TLS failed: self-signed certificate'],
] as const)('the result %s has the verdict "silence", and only tlsFailure sets "odd"', (kind, message, odd, detail) => {
  expect(probeOutcome({ kind, message })).toEqual({ verdict: 'silence', odd, detail });
});
