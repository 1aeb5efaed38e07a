import { describe, expect, test } from '@jest/globals';
import { dnsHostResolver } from '../../lib/kubernetes/dns.ts';

type Answer = readonly string[] | string;

/** Lists of addresses, or the code of an error. */
function resolver(ipv4: Answer, ipv6: Answer) {
  const answer = (given: Answer) =>
    typeof given === 'string'
      ? Promise.reject(Object.assign(new Error(given), { code: given }))
      : Promise.resolve([...given]);
  return dnsHostResolver({
    resolve4: (() => answer(ipv4)) as never,
    resolve6: (() => answer(ipv6)) as never,
  });
}

describe('the addresses of a host', () => {
  test.each<[string, Answer, Answer, readonly string[] | undefined]>([
    [
      'are those of both kinds, each once and in order',
      ['10.0.0.2', '10.0.0.1', '10.0.0.2'],
      ['2001:db8::1'],
      ['10.0.0.1', '10.0.0.2', '2001:db8::1'],
    ],
    ['are in their canonical text', ['10.0.0.1'], ['2001:DB8:0:0::1'], ['10.0.0.1', '2001:db8::1']],
    ['may be of one kind', ['10.0.0.1'], 'ENODATA', ['10.0.0.1']],
    ['may be of the other kind', 'ENOTFOUND', ['2001:db8::1'], ['2001:db8::1']],
    ['are unknown when one look-up failed', ['10.0.0.1'], 'ETIMEOUT', undefined],
    ['are unknown when the server failed', 'ESERVFAIL', ['2001:db8::1'], undefined],
    ['are unknown when there are none', 'ENOTFOUND', 'ENOTFOUND', undefined],
  ])('%s', async (_, ipv4, ipv6, expected) => {
    await expect(resolver(ipv4, ipv6)('api.example.com')).resolves.toEqual(expected);
  });

  test('the addresses of a host are unknown when no name server answers before the time for look-ups is over', async () => {
    const never = () => new Promise<never>(() => {});
    const resolve = dnsHostResolver({ resolve4: never as never, resolve6: never as never });
    await expect(resolve('api.example.com', AbortSignal.abort())).resolves.toBeUndefined();
    const end = new AbortController();
    setImmediate(() => end.abort());
    await expect(resolve('api.example.com', end.signal)).resolves.toBeUndefined();
  });
});
