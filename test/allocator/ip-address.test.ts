import { isIPv6 } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalAddress, familyOf, parseAddress } from '../../lib/allocator/ip-address.ts';
import {
  isUsableIn,
  networkContains,
  networkOf,
  parseCidr,
  rangeSize,
  usableSize,
} from '../../lib/allocator/network.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { found } from '../support/found.ts';
import { runs } from '../support/properties.ts';
import { ipRange, itemsOf, made } from '../support/ranges.ts';

test.each([
  { text: '10.0.0.1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '010.000.0.0001', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '0.0.0.0', canonical: '0.0.0.0', family: 'IPv4' },
  { text: '::ffff:10.0.0.1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '0:0:0:0:0:FFFF:a00:1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '::10.0.0.1', canonical: '::a00:1', family: 'IPv6' },
  { text: '64:ff9b::010.0.0.1', canonical: '64:ff9b::a00:1', family: 'IPv6' },
  { text: '::', canonical: '::', family: 'IPv6' },
  { text: '0:0:0:be:0:0:0:ff', canonical: '::be:0:0:0:ff', family: 'IPv6' },
  { text: '1:0:0:2:0:0:0:3', canonical: '1:0:0:2::3', family: 'IPv6' },
  { text: '1:2:3:4:5:6:7::', canonical: '1:2:3:4:5:6:7:0', family: 'IPv6' },
  { text: '1:0:0:4:5:6:0:0', canonical: '1::4:5:6:0:0', family: 'IPv6' },
])('the address $text has the canonical form $canonical and the family $family', ({ text, canonical, family }) => {
  expect(canonicalAddress(text)).toBe(canonical);
  expect(familyOf(text)).toBe(family);
});

test.each([
  ...['', 'None', ' 10.0.0.1', `${'1'.repeat(10_000)}::`],
  ...'10.0.0 10.0.0.0.1 10.0.0.256 10.0.0. .10.0.0 10..0.1 0x0a.0.0.1 10.0.0.1/24 167772161'.split(' '),
  ...'fe80::1%eth0 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4::5:6:7:8 1::2::3 :1:2:3:4:5:6:7 1:2:3:4:5:6:7:'.split(' '),
  ...'::: 12345:: g:: ::1.2.3 ::1.2.3.256 1.2.3.4:: ::1.2.3.4:5 1:2:3:4:5:6:7:1.2.3.4'.split(' '),
])('%j is not an address', (text) => {
  expect(parseAddress(text)).toBeUndefined();
  expect(canonicalAddress(text)).toBeUndefined();
  expect(familyOf(text)).toBeUndefined();
});

test('a text is parsed as an IPv6 address exactly if Node.js accepts it, except for zones and leading zeros', () => {
  const pieces = fc.constantFrom(':', '::', '0', '1', 'ab', 'ffff', '1.2.3.4', '.', 'g');
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 18 }), (some) => {
      const text = some.join('');
      fc.pre(!/[0-9a-f]{5}|(^|[.:])0+[0-9]+\.|\.0+[0-9]/.test(text) && text.includes(':'));
      expect(parseAddress(text) !== undefined).toBe(isIPv6(text));
    }),
    { numRuns: runs(200) },
  );
});

const network = (cidr: string) => made(networkOf(cidr));
const address = (text: string) => found(parseAddress(text));

describe('A network', () => {
  test.each([
    { text: '010.1.2.3/08', canonical: '10.0.0.0/8' },
    { text: '1.2.3.4/0', canonical: '0.0.0.0/0' },
    { text: '::ffff:10.0.0.7/120', canonical: '10.0.0.0/24' },
    { text: '::ffff:10.0.0.7/88', canonical: '::ff00:0:0/88' },
    { text: '::1/128', canonical: '::1/128' },
  ])('the network $text has the canonical form $canonical', ({ text, canonical }) => {
    expect(parseCidr(text)?.text).toBe(canonical);
  });

  const INVALID = ['', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/+8', '/24', '10.0.0.0/24/8', '10.0.0.0/ 8'];
  test.each(INVALID)("%j is not a network, and the error is upstream's", (text) => {
    expect(parseCidr(text)).toBeUndefined();
    expect(networkOf(text)).toMatchObject({ code: 'Unparsable', message: `invalid CIDR address: ${text}` });
  });

  test.each([
    { cidr: '192.168.1.0/32', size: 1n },
    { cidr: '128.0.0.0/1', size: 0n },
    { cidr: '2001:db8::/66', size: 2n ** 62n },
    { cidr: '2001:db8::/65', size: 2n ** 63n - 1n },
    { cidr: '::/1', size: 0n },
  ])('rangeSize of the network $cidr is $size, as upstream calculates it', ({ cidr, size }) => {
    expect(rangeSize(network(cidr))).toBe(size);
  });

  test.each([
    { cidr: 'fc::/112', size: 65_535 },
    { cidr: '10.0.0.0/31', size: 0 },
    { cidr: '10.0.0.0/32', size: 0 },
  ])('the network $cidr has $size usable addresses', ({ cidr, size }) => {
    expect(usableSize(network(cidr))).toBe(size);
  });

  test.each([
    { cidr: '10.0.0.0/24', text: '10.0.0.1', what: 'a usable address' },
    { cidr: '10.0.0.0/24', text: '10.0.0.0', what: 'a reserved address' },
    { cidr: '10.0.0.0/24', text: '10.0.0.255', what: 'a reserved address' },
    { cidr: '10.0.0.0/24', text: 'fd00::1', what: 'no address' },
    { cidr: '10.0.0.0/31', text: '10.0.0.1', what: 'a reserved address' },
    { cidr: '::/0', text: '10.0.0.1', what: 'no address' },
    { cidr: 'fd00::/64', text: 'fd00::', what: 'a reserved address' },
    { cidr: 'fd00::/64', text: 'fd00::ffff:ffff:ffff:ffff', what: 'a usable address' },
  ])('$text is $what of the network $cidr', ({ cidr, text, what }) => {
    expect(networkContains(network(cidr), address(text))).toBe(what !== 'no address');
    expect(isUsableIn(network(cidr), address(text))).toBe(what === 'a usable address');
  });
});

/* The golden cases test the operations of a range. These tests cover the limits of a range, and which texts are addresses. */

describe('An IP range', () => {
  test.each([
    { cidr: '10.0.0.0/24', text: '010.0.0.05', item: '10.0.0.5' },
    { cidr: '::ffff:10.0.0.0/120', text: '10.0.0.5', item: '10.0.0.5' },
    { cidr: 'fd00::/108', text: 'FD00:0::0005', item: 'fd00::5' },
    { cidr: 'fd00::f0/124', text: 'fd00::f5', item: 'fd00::f5' },
    { cidr: 'a:0:0:b:c::/112', text: 'a::b:c:0:0:5', item: 'a::b:c:0:0:5' },
  ])('the range $cidr parses $text as $item', ({ cidr, text, item }) => {
    const range = ipRange(cidr);
    expect(range.allocate(text)).toBeUndefined();
    const refusal = { code: 'AlreadyAllocated', message: 'provided IP is already allocated' };
    expect(range.allocate(item)).toMatchObject(refusal);
    expect(itemsOf(range)).toEqual([item]);
    range.release(text);
    expect(range.used).toBe(0);
  });

  test.each([
    { address: '::ffff:9.9.9.9', shown: '9.9.9.9' },
    { address: 'garbage', shown: 'garbage' },
    { address: '', shown: '' },
  ])('if an IP range refuses $address, the error contains the address as "$shown"', ({ address, shown }) => {
    const message = `the provided IP (${shown}) is not in the valid range. The range of valid IPs is 10.0.0.0/24`;
    expect(ipRange('10.0.0.0/24').allocate(address)).toMatchObject({ code: 'NotInRange', message });
  });

  test('indexOf returns for each address the index for which itemAt returns that address', () => {
    const cidrs = fc.oneof(
      fc.tuple(fc.ipV4(), fc.integer({ min: 2, max: 30 })),
      fc.tuple(fc.ipV6(), fc.integer({ min: 2, max: 127 })),
    );
    fc.assert(
      fc.property(cidrs, fc.nat(), ([address, prefixLength], some) => {
        const range = ipRange(`${address}/${prefixLength}`);
        fc.pre(range.max > 0);
        for (const index of [0, some % range.max, range.max - 1]) {
          expect(range.indexOf(range.itemAt(index))).toBe(index);
        }
        expect(range.indexOf(range.itemAt(-1))).toBeUndefined();
        expect(range.itemAt(-1)).toBe(range.spec.slice(0, range.spec.indexOf('/')));
      }),
    );
  });

  test('if a snapshot contains addresses beyond the maximum size of an IP range, the range lists and counts them, but has() returns false for them', () => {
    const range = ipRange('fd00::/64');
    range.restore(fromBits([4, 65_535]));
    expect(itemsOf(range)).toEqual(['fd00::5', 'fd00::1:0']);
    expect({ used: range.used, has: range.has('fd00::1:0') }).toEqual({ used: 2, has: false });
  });
});
