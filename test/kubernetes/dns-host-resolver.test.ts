import { Resolver } from 'node:dns/promises';
import { promisify } from 'node:util';
import { expect, jest, test } from '@jest/globals';
import { dnsHostResolver, remoteLookup } from '../../lib/kubernetes/dns.ts';
import { afterThisTest } from '../support/after-this-test.ts';

type Answer = readonly string[] | string;

/** Returns a resolver whose look-ups return these addresses, or fail with this code. */
function resolver(ipv4: Answer, ipv6: Answer) {
  const answer = (given: Answer) => (typeof given === 'string' ? failing(given)() : Promise.resolve([...given]));
  return dnsHostResolver({ resolve4: (() => answer(ipv4)) as never, resolve6: (() => answer(ipv6)) as never });
}

const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));
const many = Array.from({ length: 4_000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`);

const [A, B, SIX] = ['10.0.0.1', '10.0.0.2', '2001:db8::1'];

test.each<[string, Answer, Answer, readonly string[] | undefined]>([
  ['are those of both families, once and in order', [B, A, B], [SIX], [A, B, SIX]],
  ['are in their canonical form', ['10.0.0.1'], ['2001:DB8:0:0::1'], ['10.0.0.1', '2001:db8::1']],
  ['are only IPv4 addresses if no IPv6 record exists', ['10.0.0.1'], 'ENODATA', ['10.0.0.1']],
  ['are only IPv6 addresses if no IPv4 record exists', 'ENOTFOUND', ['2001:db8::1'], ['2001:db8::1']],
  ['are unknown if one look-up times out', ['10.0.0.1'], 'ETIMEOUT', undefined],
  ['are unknown if the name server fails', 'ESERVFAIL', ['2001:db8::1'], undefined],
  ['are unknown if no record exists', 'ENOTFOUND', 'ENOTFOUND', undefined],
])('the addresses of a host %s', async (_, ipv4, ipv6, expected) => {
  await expect(resolver(ipv4, ipv6)('api.example.com')).resolves.toEqual(expected);
});

test('the resolver returns at most 1,000 addresses of each family, because more would keep the process busy', async () => {
  await expect(resolver(many, ['2001:db8::1'])('api.example.com')).resolves.toHaveLength(1_001);
});

test('the addresses of a host are unknown if no name server answers before the look-up is aborted', async () => {
  const never = () => new Promise<never>(() => {});
  const resolve = dnsHostResolver({ resolve4: never as never, resolve6: never as never });
  await expect(resolve('api.example.com', AbortSignal.abort())).resolves.toBeUndefined();
  const end = new AbortController();
  setImmediate(() => end.abort());
  await expect(resolve('api.example.com', end.signal)).resolves.toBeUndefined();
});

/** Replaces the answers of name servers. A promise that never resolves simulates a name server that does not answer. */
function nameServers(ipv4: (host: string) => Promise<string[]>, ipv6: () => Promise<string[]>): void {
  afterThisTest(() => jest.restoreAllMocks());
  jest.spyOn(Resolver.prototype, 'resolve4').mockImplementation(ipv4 as never);
  jest.spyOn(Resolver.prototype, 'resolve6').mockImplementation(ipv6 as never);
}
const find = promisify(remoteLookup);

test('if the name servers of one cluster do not answer, look-ups for other clusters are not delayed', async () => {
  const found = Promise.resolve(['203.0.113.9', '127.0.0.1']);
  nameServers((host) => (host.startsWith('silent') ? new Promise(() => {}) : found), failing('ENODATA'));
  for (let n = 0; n < 100; n += 1) remoteLookup(`silent-${n}.example.com`, { all: true }, () => undefined);
  expect(await find('api.example.com', { all: true })).toEqual([{ address: '203.0.113.9', family: 4 }]);
  expect(await find('api.example.com', {})).toBe('203.0.113.9');
});

test('each look-up for a connection uses a separate resolver, so that look-ups do not share sockets', async () => {
  nameServers(() => Promise.resolve(['203.0.113.9']), failing('ENODATA'));
  for (const host of ['silent.example.com', 'api.example.com']) await find(host, { all: true });
  const { contexts } = jest.mocked(Resolver.prototype.resolve4).mock;
  expect(new Set(contexts).size).toBe(2);
});

test('a look-up for a connection returns at most 1,000 addresses, because more would keep the process busy', async () => {
  nameServers(() => Promise.resolve(many), failing('ENODATA'));
  expect(await find('api.example.com', { all: true })).toHaveLength(1_000);
});

test.each([
  ['ENOTFOUND', 'ENODATA', 'ENOTFOUND'],
  ['ENODATA', 'ESERVFAIL', 'EAI_AGAIN'],
  ['ETIMEOUT', 'ETIMEOUT', 'EAI_AGAIN'],
])('if the two queries of a look-up fail with %s and %s, the look-up fails with %s', async (ipv4, ipv6, code) => {
  nameServers(failing(ipv4), failing(ipv6));
  await expect(find('api.example.com', { all: true })).rejects.toMatchObject({ code });
});

test('a look-up for a connection returns the addresses of one family if the query for the other family fails', async () => {
  nameServers(failing('ESERVFAIL'), () => Promise.resolve(['2001:db8::1']));
  expect(await find('api.example.com', { all: true })).toEqual([{ address: '2001:db8::1', family: 6 }]);
});

test('if the host of a connection is already an address, the look-up returns it unchanged, without a query', async () => {
  expect(await find('203.0.113.9', {})).toBe('203.0.113.9');
});
