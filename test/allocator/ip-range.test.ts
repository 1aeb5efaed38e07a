import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { allocateUntilFull, ipRange, pickLowest } from '../support/ranges.ts';

const FULL = { code: 'Full', message: 'range is full' };
const ALREADY_ALLOCATED = { code: 'AlreadyAllocated', message: 'provided IP is already allocated' };
const notInRange = (address: string, cidr: string) => ({
  code: 'NotInRange',
  message: `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${cidr}`,
});

describe('An IP range', () => {
  describe.each([
    {
      cidr: '192.168.1.0/24',
      free: 254,
      released: '192.168.1.5',
      outside: ['192.168.0.1', '192.168.1.0', '192.168.1.255', '192.168.2.2'],
    },
    {
      cidr: '10.0.0.0/15',
      free: 131_070,
      released: '10.0.0.5',
      outside: ['10.0.0.0', '10.15.255.255', '10.255.255.2'],
    },
    {
      cidr: '2001:db8:1::/48',
      free: 65_535,
      released: '2001:db8:1::5',
      outside: ['2001:db8::1', '2001:db8:1::', '2001:db8:1::1:0', '2001:db8:2::2'],
    },
  ])('of $cidr', ({ cidr, free, released, outside }) => {
    test('is all free at first', () => {
      const range = ipRange(cidr);
      expect({ spec: range.spec, free: range.free, used: range.used }).toEqual({ spec: cidr, free, used: 0 });
    });

    test('allocates each of its addresses once, then is full, and allocates what was released', () => {
      const range = ipRange(cidr);
      const items = allocateUntilFull(range);
      expect(new Set(items).size).toBe(free);
      expect(items.every((item) => range.has(item))).toBe(true);
      expect({ free: range.free, used: range.used }).toEqual({ free: 0, used: free });
      expect(range.allocateNext()).toMatchObject(FULL);

      range.release(released);
      expect({ free: range.free, used: range.used }).toEqual({ free: 1, used: free - 1 });
      expect(range.allocateNext()).toEqual({ item: released });

      range.release(released);
      expect(range.allocate(released)).toBeUndefined();
      expect(range.allocate(released)).toMatchObject(ALREADY_ALLOCATED);
      expect(range.free).toBe(0);
    });

    test.each(outside.map((address) => ({ address })))('does not have $address', ({ address }) => {
      const range = ipRange(cidr);
      range.release(address);
      expect(range.allocate(address)).toMatchObject(notInRange(address, cidr));
      expect(range.indexOf(address)).toBeUndefined();
      expect(range.has(address)).toBe(false);
    });
  });

  test.each(['192.168.1.1/32', '10.0.0.0/31', 'fd00::/128'])('of %s has no address', (cidr) => {
    const range = ipRange(cidr);
    expect({ max: range.max, free: range.free, next: range.allocateNext() }).toMatchObject({
      max: 0,
      free: 0,
      next: FULL,
    });
  });

  test('of two addresses allocates both and stays full', () => {
    const range = ipRange('192.168.1.240/30');
    expect(range.max).toBe(2);
    expect(allocateUntilFull(range).toSorted()).toEqual(['192.168.1.241', '192.168.1.242']);
    for (let attempt = 0; attempt < 100; attempt++) expect(range.allocateNext()).toMatchObject(FULL);
    expect(range.allocate('192.168.1.241')).toMatchObject(ALREADY_ALLOCATED);
  });

  test('of a /24 allocates 238 addresses above its reserved band, then one that was released within it', () => {
    const range = ipRange('192.168.1.0/24');
    for (let taken = 0; taken < 238; taken++) range.allocateNext();
    expect([...range.items()]).toEqual(Array.from({ length: 238 }, (_, index) => `192.168.1.${index + 17}`));
    for (let host = 1; host <= 16; host++) expect(range.allocate(`192.168.1.${host}`)).toBeUndefined();
    expect(range.allocateNext()).toMatchObject(FULL);
    range.release('192.168.1.10');
    expect(allocateUntilFull(range)).toEqual(['192.168.1.10']);
  });

  test('uses its reserved band when nothing else is left', () => {
    const range = ipRange('192.168.1.0/24');
    expect(allocateUntilFull(range)).toHaveLength(254);
    expect([...range.items()]).toEqual(Array.from({ length: 254 }, (_, index) => `192.168.1.${index + 1}`));
  });

  test.each([
    [[]],
    [['192.168.1.1']],
    [['192.168.1.1', '192.168.1.254']],
    [['192.168.1.1', '192.168.1.128', '192.168.1.254']],
  ])('lists %j after they were taken', (addresses: string[]) => {
    const range = ipRange('192.168.1.0/24');
    for (const address of addresses.toReversed()) expect(range.allocate(address)).toBeUndefined();
    expect([...range.items()]).toEqual(addresses);
  });

  test('is restored from its snapshot, and refuses that of another network', () => {
    const range = ipRange('192.168.1.0/24');
    for (let taken = 0; taken < 10; taken++) range.allocateNext();
    const snapshot = range.snapshot();
    const other = ipRange('192.168.2.0/24');
    expect(other.restore(snapshot)).toMatchObject({
      code: 'MismatchedRange',
      message: 'the provided network does not match the current range',
    });
    expect(other.used).toBe(0);
    const copy = ipRange('192.168.1.0/24');
    expect(copy.restore(snapshot)).toBeUndefined();
    expect([...copy.items()]).toEqual([...range.items()]);
    expect(copy.free).toBe(range.free);
  });

  test.each(['', 'garbage', '10.0.0.0/33'])('is neither made of nor restored from the range %j', (range) => {
    const unparsable = { code: 'Unparsable', message: `invalid CIDR address: ${range}` };
    const snapshot = { range, data: fromBits([1]) };
    expect(ipRange('10.0.0.0/24').restore(snapshot)).toMatchObject(unparsable);
    expect(ipRangeOf(range, pickLowest)).toMatchObject(unparsable);
  });

  test('accepts another text of its own network', () => {
    const range = ipRange('10.0.0.0/24');
    expect(range.restore({ range: '10.0.0.7/24', data: fromBits([1]) })).toBeUndefined();
    expect(range.snapshot()).toEqual({ range: '10.0.0.0/24', data: fromBits([1]) });
  });

  test.each([
    { cidr: '10.0.0.0/24', text: '010.0.0.05', item: '10.0.0.5' },
    { cidr: '10.0.0.0/24', text: '::ffff:10.0.0.5', item: '10.0.0.5' },
    { cidr: '::ffff:10.0.0.0/120', text: '10.0.0.5', item: '10.0.0.5' },
    { cidr: 'fd00::/108', text: 'FD00:0::0005', item: 'fd00::5' },
    { cidr: 'fd00::f0/124', text: 'fd00::f5', item: 'fd00::f5' },
    { cidr: 'a:0:0:b:c::/112', text: 'a::b:c:0:0:5', item: 'a::b:c:0:0:5' },
  ])('of $cidr knows $text as $item', ({ cidr, text, item }) => {
    const range = ipRange(cidr);
    expect(range.allocate(text)).toBeUndefined();
    expect(range.allocate(item)).toMatchObject(ALREADY_ALLOCATED);
    expect([...range.items()]).toEqual([item]);
    range.release(text);
    expect(range.used).toBe(0);
  });

  test.each([
    { address: '::ffff:9.9.9.9', shown: '9.9.9.9' },
    { address: 'FD00::0', shown: 'fd00::' },
    { address: 'garbage', shown: 'garbage' },
    { address: '', shown: '' },
  ])('names $address as "$shown" when it refuses it', ({ address, shown }) => {
    expect(ipRange('10.0.0.0/24').allocate(address)).toMatchObject(notInRange(shown, '10.0.0.0/24'));
  });

  test('numbers the addresses of any network so that the number leads back to the address', () => {
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

  test('lists addresses beyond its cap that a snapshot brought, though it does not allocate them', () => {
    const range = ipRange('fd00::/64');
    range.restore({ range: 'fd00::/64', data: fromBits([4, 65_535]) });
    expect([...range.items()]).toEqual(['fd00::5', 'fd00::1:0']);
    expect({ used: range.used, has: range.has('fd00::1:0') }).toEqual({ used: 2, has: false });
  });
});
