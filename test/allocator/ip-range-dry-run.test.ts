import { describe, expect, test } from '@jest/globals';
import { IPRangeDryRun } from '../../lib/allocator/ip-range-dry-run.ts';
import { ipRange } from '../support/ranges.ts';

describe('A dry run over an IP range', () => {
  test.each([
    { cidr: '192.168.1.0/24', base: '192.168.1.0', first: '192.168.1.1' },
    { cidr: '2001:db8:1::/48', base: '2001:db8:1::', first: '2001:db8:1::1' },
  ])('of $cidr answers and leaves the range as it is', ({ cidr, base, first }) => {
    const range = ipRange(cidr);
    const dryRun = new IPRangeDryRun(range);
    expect({ spec: dryRun.spec, max: dryRun.max, reserved: dryRun.reserved }).toEqual({
      spec: cidr,
      max: range.max,
      reserved: range.reserved,
    });
    expect(dryRun.allocate(first)).toBeUndefined();
    expect(dryRun.allocateNext()).toEqual({ item: base });
    dryRun.release(first);
    expect({ used: dryRun.used, free: dryRun.free, items: [...dryRun.items()] }).toEqual({
      used: 0,
      free: range.max,
      items: [],
    });
    expect(range.used).toBe(0);
  });

  test('refuses what is outside, and not what is taken', () => {
    const range = ipRange('192.168.1.0/24');
    range.allocate('192.168.1.5');
    const dryRun = new IPRangeDryRun(range);
    expect(dryRun.allocate('192.168.1.5')).toBeUndefined();
    expect(dryRun.allocate('192.168.1.255')).toMatchObject({
      code: 'NotInRange',
      message: 'the provided IP (192.168.1.255) is not in the valid range. The range of valid IPs is 192.168.1.0/24',
    });
  });

  test('releases nothing, and knows what is taken', () => {
    const range = ipRange('192.168.1.0/24');
    range.allocate('192.168.1.5');
    const dryRun = new IPRangeDryRun(range);
    dryRun.release('192.168.1.5');
    dryRun.release('10.0.0.1');
    expect({ has: dryRun.has('192.168.1.5'), index: dryRun.indexOf('192.168.1.5'), at: dryRun.itemAt(4) }).toEqual({
      has: true,
      index: 4,
      at: '192.168.1.5',
    });
    expect([...range.items()]).toEqual(['192.168.1.5']);
  });
});
