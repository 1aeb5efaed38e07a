import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { ipRange, itemsOf } from '../support/ranges.ts';

/* The golden cases test the operations of a range. These tests are about its limits and the texts of addresses. */

const notInRange = (address: string, cidr: string) => ({
  code: 'NotInRange',
  message: `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${cidr}`,
});

describe('An IP range', () => {
  test.each([
    { cidr: '10.0.0.0/24', text: '010.0.0.05', item: '10.0.0.5' },
    { cidr: '10.0.0.0/24', text: '::ffff:10.0.0.5', item: '10.0.0.5' },
    { cidr: '::ffff:10.0.0.0/120', text: '10.0.0.5', item: '10.0.0.5' },
    { cidr: 'fd00::/108', text: 'FD00:0::0005', item: 'fd00::5' },
    { cidr: 'fd00::f0/124', text: 'fd00::f5', item: 'fd00::f5' },
    { cidr: 'a:0:0:b:c::/112', text: 'a::b:c:0:0:5', item: 'a::b:c:0:0:5' },
  ])('the range $cidr parses $text as $item', ({ cidr, text, item }) => {
    const range = ipRange(cidr);
    expect(range.allocate(text)).toBeUndefined();
    expect(range.allocate(item)).toMatchObject({
      code: 'AlreadyAllocated',
      message: 'provided IP is already allocated',
    });
    expect(itemsOf(range)).toEqual([item]);
    range.release(text);
    expect(range.used).toBe(0);
  });

  test.each([
    { address: '::ffff:9.9.9.9', shown: '9.9.9.9' },
    { address: 'FD00::0', shown: 'fd00::' },
    { address: 'garbage', shown: 'garbage' },
    { address: '', shown: '' },
  ])('an IP range refuses $address and prints it as "$shown"', ({ address, shown }) => {
    expect(ipRange('10.0.0.0/24').allocate(address)).toMatchObject(notInRange(shown, '10.0.0.0/24'));
  });

  test('each number in any network maps to an address that maps back to the number', () => {
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

  test('an IP range lists addresses of a snapshot beyond its cap, but does not allocate them', () => {
    const range = ipRange('fd00::/64');
    range.restore(fromBits([4, 65_535]));
    expect(itemsOf(range)).toEqual(['fd00::5', 'fd00::1:0']);
    expect({ used: range.used, has: range.has('fd00::1:0') }).toEqual({ used: 2, has: false });
  });
});
