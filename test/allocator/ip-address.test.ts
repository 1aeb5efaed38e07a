import { isIPv6 } from 'node:net';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalAddress, familyOf, formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { runs } from '../support/properties.ts';

test.each([
  { text: '10.0.0.1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '010.000.0.0001', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '0.0.0.0', canonical: '0.0.0.0', family: 'IPv4' },
  { text: '255.255.255.255', canonical: '255.255.255.255', family: 'IPv4' },
  { text: '::ffff:10.0.0.1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '0:0:0:0:0:FFFF:a00:1', canonical: '10.0.0.1', family: 'IPv4' },
  { text: '::10.0.0.1', canonical: '::a00:1', family: 'IPv6' },
  { text: '64:ff9b::010.0.0.1', canonical: '64:ff9b::a00:1', family: 'IPv6' },
  { text: '::', canonical: '::', family: 'IPv6' },
  { text: '2001:DB8::00001', canonical: '2001:db8::1', family: 'IPv6' },
  { text: '0:0:0:be:0:0:0:ff', canonical: '::be:0:0:0:ff', family: 'IPv6' },
  { text: '1:0:0:2:0:0:0:3', canonical: '1:0:0:2::3', family: 'IPv6' },
  { text: '1:0:2:3:4:5:6:7', canonical: '1:0:2:3:4:5:6:7', family: 'IPv6' },
  { text: '1:2:3:4:5:6:7::', canonical: '1:2:3:4:5:6:7:0', family: 'IPv6' },
  { text: '1:0:0:4:5:6:0:0', canonical: '1::4:5:6:0:0', family: 'IPv6' },
  { text: 'fe80::', canonical: 'fe80::', family: 'IPv6' },
])('the address $text has the canonical form $canonical and the family $family', ({ text, canonical, family }) => {
  expect(canonicalAddress(text)).toBe(canonical);
  expect(familyOf(text)).toBe(family);
});

test.each([
  '',
  'None',
  '10.0.0',
  '10.0.0.0.1',
  '10.0.0.256',
  '10.0.0.',
  '.10.0.0',
  '10..0.1',
  '0x0a.0.0.1',
  ' 10.0.0.1',
  '10.0.0.1/24',
  '167772161',
  'fe80::1%eth0',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4::5:6:7:8',
  '1::2::3',
  ':1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:',
  ':::',
  '12345::',
  'g::',
  '::1.2.3',
  '::1.2.3.256',
  '1.2.3.4::',
  '::1.2.3.4:5',
  '1:2:3:4:5:6:7:1.2.3.4',
  `${'1'.repeat(10_000)}::`,
])('%j is not an address', (text) => {
  expect(parseAddress(text)).toBeUndefined();
  expect(canonicalAddress(text)).toBeUndefined();
  expect(familyOf(text)).toBeUndefined();
});

test('the canonical text of an address is parsed to the same address', () => {
  const texts = fc.oneof(fc.ipV4(), fc.ipV4Extended(), fc.ipV6());
  fc.assert(
    fc.property(texts, (text) => {
      const address = parseAddress(text);
      fc.pre(address !== undefined);
      expect(parseAddress(formatAddress(address))).toEqual(address);
      expect(canonicalAddress(text)).toBe(formatAddress(address));
    }),
  );
});

test('a text is an IPv6 address if Node.js accepts it, except zones and leading zeros', () => {
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
