import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { usableSize } from '../../lib/allocator/intervals.ts';
import { type Address, formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import {
  hostBits,
  isUsableIn,
  type Network,
  networkContains,
  networkOf,
  parseCidr,
  rangeSize,
} from '../../lib/allocator/network.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';

function network(cidr: string): Network {
  const parsed = networkOf(cidr);
  if (isRefused(parsed)) throw parsed;
  return parsed;
}

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`${text} is no address`);
  return parsed;
}

describe('A network', () => {
  test.each([
    { text: '10.0.0.0/24', canonical: '10.0.0.0/24' },
    { text: '10.0.0.7/24', canonical: '10.0.0.0/24' },
    { text: '010.1.2.3/08', canonical: '10.0.0.0/8' },
    { text: '1.2.3.4/0', canonical: '0.0.0.0/0' },
    { text: '2001:DB8:0:0::7/64', canonical: '2001:db8::/64' },
    { text: '::ffff:10.0.0.7/120', canonical: '10.0.0.0/24' },
    { text: '::ffff:10.0.0.7/88', canonical: '::ff00:0:0/88' },
    { text: '::1/128', canonical: '::1/128' },
  ])('the network $text has the canonical form $canonical', ({ text, canonical }) => {
    expect(parseCidr(text)?.text).toBe(canonical);
  });

  test.each([
    '',
    'garbage',
    '10.0.0.1',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/+8',
    '/24',
    '10.0.0.0/24/8',
    '10.0.0.0/ 8',
  ])("%j is not a network, and the error is upstream's", (text) => {
    expect(parseCidr(text)).toBeUndefined();
    expect(networkOf(text)).toMatchObject({ code: 'Unparsable', message: `invalid CIDR address: ${text}` });
  });

  test.each([
    { cidr: '192.168.1.0/32', size: 1n },
    { cidr: '64.0.0.0/2', size: 2n ** 30n },
    { cidr: '128.0.0.0/1', size: 0n },
    { cidr: '2001:db8::/98', size: 2n ** 30n },
    { cidr: '2001:db8::/66', size: 2n ** 62n },
    { cidr: '2001:db8::/65', size: 2n ** 63n - 1n },
    { cidr: '::/1', size: 0n },
  ])('the network $cidr has $size addresses', ({ cidr, size }) => {
    expect(rangeSize(network(cidr))).toBe(size);
  });

  test.each([
    { cidr: '10.0.0.0/24', size: 254 },
    { cidr: 'fc::/112', size: 65_535 },
    { cidr: 'fc::/64', size: Number.MAX_SAFE_INTEGER },
    { cidr: '10.0.0.0/31', size: 0 },
    { cidr: '10.0.0.0/32', size: 0 },
  ])('the network $cidr has $size usable addresses', ({ cidr, size }) => {
    expect(usableSize(network(cidr))).toBe(size);
  });

  test.each([
    { cidr: '10.0.0.0/24', text: '10.0.0.1', contains: true, usable: true },
    { cidr: '10.0.0.0/24', text: '10.0.0.0', contains: true, usable: false },
    { cidr: '10.0.0.0/24', text: '10.0.0.255', contains: true, usable: false },
    { cidr: '10.0.0.0/24', text: 'fd00::1', contains: false, usable: false },
    { cidr: '10.0.0.0/31', text: '10.0.0.1', contains: true, usable: false },
    { cidr: '::/0', text: '10.0.0.1', contains: false, usable: false },
    { cidr: 'fd00::/64', text: 'fd00::', contains: true, usable: false },
    { cidr: 'fd00::/64', text: 'fd00::ffff:ffff:ffff:ffff', contains: true, usable: true },
  ])(
    'the network $cidr contains $text: $contains, and $text is usable in it: $usable',
    ({ cidr, text, contains, usable }) => {
      expect(networkContains(network(cidr), address(text))).toBe(contains);
      expect(isUsableIn(network(cidr), address(text))).toBe(usable);
    },
  );

  test('a network contains exactly the addresses with its prefix', () => {
    const value = fc.bigInt({ min: 0n, max: 2n ** 128n - 1n });
    fc.assert(
      fc.property(value, value, fc.integer({ min: 0, max: 128 }), (one, other, prefixLength) => {
        const of = network(`${formatAddress({ family: 'IPv6', value: one })}/${prefixLength}`);
        fc.pre(of.family === 'IPv6');
        const host = BigInt(hostBits(of));
        expect(networkContains(of, { family: 'IPv6', value: of.base | (other & ((1n << host) - 1n)) })).toBe(true);
        expect(networkContains(of, { family: 'IPv6', value: other })).toBe(one >> host === other >> host);
      }),
    );
  });
});
