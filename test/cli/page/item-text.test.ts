import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { itemTexts } from '../../../cli/page/map-layout.ts';
import { ITEM_TEXT_SCRIPT } from '../../../cli/page/page-script.ts';
import { addressOf, formatAddress, formatIPv4 } from '../../../lib/allocator/ip-address.ts';

const inThePage = new Function(`${ITEM_TEXT_SCRIPT}; return itemText`)();

const zeroRuns = fc
  .array(fc.constantFrom(0n, 0n, 1n, 0xabcn, 0xffffn), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.reduce<bigint>((value, group) => (value << 16n) | group, 0n));

test.each([
  ['10.96.0.0', 300, '10.96.1.44'],
  ['192.168.255.0', 256, '192.169.0.0'],
  ['fd00::', 0, 'fd00::'],
  ['fd00:10:96::', 65_535, 'fd00:10:96::ffff'],
  ['fd00:10:96::', 65_536, 'fd00:10:96::1:0'],
  ['30000', 2_767, '32767'],
])('of the range that begins with %s, number %d is %s', (first, index, item) => {
  const { at, kind, base } = itemTexts(first);

  expect(at(index)).toBe(item);
  expect(inThePage(kind, base, index)).toBe(item);
});

test('the page and the server name each IPv6 address alike', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.bigInt({ min: 0n, max: (1n << 128n) - 65_536n }), zeroRuns),
      fc.nat(65_535),
      (base, index) => {
        const value = (base + BigInt(index)) & ((1n << 128n) - 1n);
        fc.pre(value === base + BigInt(index));
        expect(inThePage('ipv6', `0x${base.toString(16)}`, index)).toBe(formatAddress(addressOf(value)));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('the page and the server name each IPv4 address alike', () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff - 65_536), fc.nat(65_535), (base, index) => {
      const { kind, base: told, at } = itemTexts(formatIPv4(base));
      expect(inThePage(kind, told, index)).toBe(at(index));
    }),
  );
});
