import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Network, parseCidr } from '../../lib/allocator/network.ts';
import { fullFamilies, serviceCidrUsage } from '../../lib/repair/service-cidr-usage.ts';

function cidr(name: string, texts: readonly string[], ready = true) {
  return { name, networks: texts.map((text) => parseCidr(text) as Network), ready };
}

const address = (host: number) => `10.0.0.${host}`;
const aNetwork = fc
  .tuple(fc.nat(255), fc.integer({ min: 24, max: 32 }))
  .map(([host, bits]) => `${address(host)}/${bits}`);

test('each address counts once in each ServiceCIDR that contains it, and once in the sum of the ready ServiceCIDRs', () => {
  const cidrs = fc.array(fc.record({ networks: fc.tuple(aNetwork), ready: fc.boolean() }), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(cidrs, fc.array(fc.nat(255)), (drawn, hosts) => {
      const given = drawn.map(({ networks, ready }, index) => cidr(`c${index}`, networks, ready));
      const usable = ({ networks }: (typeof given)[number], host: number) =>
        networks.some(({ base, prefixLength }) => {
          const at = 0x0a000000 + host - Number(base);
          return at > 0 && at < 2 ** (32 - prefixLength) - 1;
        });
      const all = Array.from({ length: 256 }, (_, host) => host);
      const served = all.filter((host) => given.some((one) => one.ready && usable(one, host)));
      const usage = serviceCidrUsage(given, hosts.map(address));
      expect(usage.sums).toEqual([
        {
          family: 'IPv4',
          networks: given.length,
          used: served.filter((host) => hosts.includes(host)).length,
          capacity: served.length,
        },
      ]);
      for (const { name, used } of usage.networks) {
        const own = given.find((one) => one.name === name);
        expect(used).toBe(all.filter((host) => own && hosts.includes(host) && usable(own, host)).length);
      }
    }),
  );
});

test('the usage of a network has one cell for each address, and at most 256 cells', () => {
  const taken = ['10.0.0.1', 'fd00::1', 'fd00::ffff:ffff:ffff:ffff', 'fd00:1::5', 'no address'];
  const usage = serviceCidrUsage([cidr('a', ['10.0.0.0/29', 'fd00::/64']), cidr('b', ['fd00:1::/108'])], taken);
  const { sums, networks } = usage;
  expect(networks.map(({ cells }) => cells.length)).toEqual([8, 256, 256]);
  expect(networks.map(({ cells }) => cells.replace(/0+/g, '.'))).toEqual(['.4.', '1.1', '1.']);
  expect(sums.map(({ used, capacity }) => [used, capacity])).toEqual([
    [1, 6],
    [3, Number.MAX_SAFE_INTEGER],
  ]);
});

test('a pass keeps the usage of the default ServiceCIDR and of the fullest ServiceCIDRs', () => {
  const many = Array.from({ length: 100 }, (_, n) => cidr(`c${n}`, [`10.1.${n}.0/24`]));
  const { networks, sums } = serviceCidrUsage([cidr('kubernetes', ['10.0.0.0/24']), ...many], ['10.1.77.1']);
  expect(networks.slice(0, 2).map(({ name }) => name)).toEqual(['kubernetes', 'c77']);
  expect([networks.length, sums[0]?.networks]).toEqual([16, 101]);
});

test('a family is full if no ready ServiceCIDR has a free address', () => {
  const full = [cidr('a', ['10.0.0.0/30', 'fd00::/126']), cidr('b', ['10.0.1.0/30'], false)];
  const messages = fullFamilies(serviceCidrUsage(full, ['10.0.0.1', '10.0.0.2'])).map(({ message }) => message);
  expect(messages).toEqual([expect.stringContaining('in the ServiceCIDRs 10.0.0.0/30, which have room for 2')]);
  const none = fullFamilies(serviceCidrUsage([cidr('a', ['10.0.0.0/30'], false)], []));
  expect(none).toMatchObject([
    { type: 'nothingFree', message: expect.stringContaining('IPv4, none of which is ready') },
  ]);
});
