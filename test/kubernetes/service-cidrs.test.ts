import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { isUsableIn, parseCidr } from '../../lib/allocator/network.ts';
import { servedAddresses } from '../../lib/kubernetes/service-cidrs.ts';

const aNetwork = fc
  .record({ isIPv4: fc.boolean(), host: fc.nat(255), bits: fc.integer({ min: 0, max: 8 }) })
  .map(({ isIPv4, host, bits }) =>
    isIPv4 ? `10.0.0.${host}/${32 - bits}` : `fd00::${host.toString(16)}/${128 - bits}`,
  );
const anAddress = fc
  .record({ isIPv4: fc.boolean(), host: fc.nat(255) })
  .map(({ isIPv4, host }) =>
    isIPv4 ? `10.0.0.${host}` : formatAddress({ family: 'IPv6', value: (0xfdn << 120n) + BigInt(host) }),
  );

test('an address is served if it is usable in any of the ServiceCIDRs, even if they overlap', () => {
  fc.assert(
    fc.property(fc.array(aNetwork), fc.array(anAddress, { minLength: 1 }), (texts, addresses) => {
      const networks = texts.flatMap((text) => parseCidr(text) ?? []);
      const isServed = servedAddresses(networks.map((network) => ({ name: network.text, networks: [network] })));
      for (const text of addresses) {
        const address = parseAddress(text);
        expect(isServed(text)).toBe(address !== undefined && networks.some((network) => isUsableIn(network, address)));
      }
    }),
  );
});

test('every address is served if the ServiceCIDRs are unknown, and an invalid address is not served if they are known', () => {
  expect(servedAddresses(undefined)('10.0.0.1')).toBe(true);
  expect(servedAddresses([])('no address')).toBe(false);
});
