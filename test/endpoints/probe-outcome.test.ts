import { describe, expect, test } from '@jest/globals';
import { probeOutcome } from '../../lib/endpoints/probe-outcome.ts';

const SHUTTING_DOWN = [
  '[+]ping ok',
  '[+]etcd ok',
  '[+]poststarthook/start-apiextensions-informers ok',
  '[-]shutdown failed: reason withheld',
  'readyz check failed',
].join('\n');

const ETCD_FAILED = '[+]ping ok\n[-]etcd failed: reason withheld\n[+]shutdown ok\nreadyz check failed';

describe('the answer of a probe', () => {
  test.each([
    { name: '200', status: 200, body: 'ok', verdict: 'ready', odd: false },
    { name: '401, which asks for a credential', status: 401, body: '', verdict: 'alive', odd: false },
    { name: '403, which refuses anonymous requests', status: 403, body: '', verdict: 'alive', odd: false },
    { name: '429, which is too busy', status: 429, body: '', verdict: 'alive', odd: false },
    { name: '500 whose shutdown check failed', status: 500, body: SHUTTING_DOWN, verdict: 'shuttingDown', odd: false },
    {
      name: '500 of the shutdown check alone',
      status: 500,
      body: 'internal server error: process is shutting down',
      verdict: 'shuttingDown',
      odd: false,
    },
    { name: '500 whose etcd check failed', status: 500, body: ETCD_FAILED, verdict: 'miss', odd: false },
    {
      name: '500 that only mentions a shutdown',
      status: 500,
      body: 'no shutdown failed: today',
      verdict: 'miss',
      odd: false,
    },
    { name: '503 whose text looks like a shutdown', status: 503, body: SHUTTING_DOWN, verdict: 'miss', odd: false },
    { name: '599', status: 599, body: '', verdict: 'miss', odd: false },
    { name: '404, which is no API server', status: 404, body: '', verdict: 'miss', odd: true },
    { name: '301, which leads elsewhere', status: 301, body: '', verdict: 'miss', odd: true },
    { name: '204, which says nothing', status: 204, body: '', verdict: 'miss', odd: true },
    { name: '600, which is no status', status: 600, body: '', verdict: 'miss', odd: true },
  ] as const)('$name is $verdict', ({ status, body, verdict, odd }) => {
    const outcome = probeOutcome({ kind: 'status', status, body });
    expect(outcome).toMatchObject({ verdict, odd, answered: true });
    expect(outcome.detail).toContain(`answered ${status}`);
  });

  test('a failed check is named', () => {
    expect(probeOutcome({ kind: 'status', status: 500, body: ETCD_FAILED }).detail).toBe('answered 500: etcd');
  });

  test('silence is a miss, and no answer', () => {
    expect(probeOutcome({ kind: 'silence', message: 'connect ECONNREFUSED' })).toEqual({
      verdict: 'miss',
      odd: false,
      answered: false,
      detail: 'no answer: connect ECONNREFUSED',
    });
  });

  test('a certificate that does not verify is a miss that a person should check', () => {
    expect(probeOutcome({ kind: 'tlsFailure', message: 'self-signed certificate' })).toEqual({
      verdict: 'miss',
      odd: true,
      answered: false,
      detail: 'TLS failed: self-signed certificate',
    });
  });
});
