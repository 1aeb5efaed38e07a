import { describe, expect, test } from '@jest/globals';
import { freeAddresses } from '../../../cli/allocate/free-addresses.ts';
import { parseCidr } from '../../../lib/allocator/network.ts';

const networks = (...cidrs: readonly string[]) => cidrs.flatMap((text) => parseCidr(text) ?? []);
const lowest = () => 0;
const highest = (below: number) => below - 1;

describe('free addresses of ServiceCIDRs', () => {
  test('the search in each band begins at a random address, and returns no address twice', () => {
    const free = [...freeAddresses(networks('10.0.0.0/27'), () => false, highest)];
    expect([free[0], free[1], free[16], free[17]]).toEqual(['10.0.0.16', '10.0.0.1', '10.0.0.30', '10.0.0.17']);
    expect(new Set(free).size).toBe(30);
  });

  test('the search skips taken addresses, even if another caller allocates them during the search', () => {
    const taken = new Set(['10.0.0.1']);
    const free = freeAddresses(networks('10.0.0.0/27'), (address) => taken.has(address), lowest);
    expect(free.next().value).toBe('10.0.0.2');
    taken.add('10.0.0.3');
    expect(free.next().value).toBe('10.0.0.4');
  });

  test.each([
    ['10.0.0.0/30', ['10.0.0.1', '10.0.0.2']],
    ['10.0.0.0/31', []],
    ['10.0.0.0/32', []],
    ['fd00::/127', ['fd00::1']],
    ['fd00::/128', []],
  ])('the free addresses of the network %s are %j', (cidr, addresses) => {
    expect([...freeAddresses(networks(cidr), () => false, lowest)]).toEqual(addresses);
  });

  test('the search in a /64 does not enumerate its addresses: it skips a taken static band of 256 addresses at once', () => {
    const middle = (below: number) => Math.min(below - 1, 2 ** 40);
    expect(freeAddresses(networks('fd00::/64'), () => false, middle).next().value).toBe('fd00::100');
    const isStatic = (text: string) => Number.parseInt(text.slice('fd00::'.length), 16) <= 0x100;
    expect(freeAddresses(networks('fd00::/64'), isStatic, lowest).next().value).toBe('fd00::101');
  });
});
