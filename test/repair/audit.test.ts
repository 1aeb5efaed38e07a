import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Network, parseCidr } from '../../lib/allocator/network.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import { type AuditedRange, auditRange, startAudit } from '../../lib/repair/audit.ts';
import type { ClaimResult } from '../../lib/repair/claims.ts';
import { fullFamilies, serviceCidrUsage } from '../../lib/repair/service-cidr-usage.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { made } from '../support/ranges.ts';
import { service } from './services.ts';

const BY = service('s');
const WORDS = { item: 'cluster IP', range: 'service CIDR' };

function rangeOf(cidr: string): AuditedRange {
  return made(startAudit(RANGE_KEYS.primary, cidr));
}

const codeOf = (result: ClaimResult) => (isRefused(result) ? result.code : result);

test.each([
  { address: '10.15.255.255', cidr: '10.0.0.0/12', why: 'the broadcast address of a large range', inside: false },
  { address: '::ffff:10.1.2.3', cidr: '10.0.0.0/12', why: 'an IPv4-mapped spelling', inside: true },
  { address: 'fd00::1:0', cidr: 'fd00::/64', why: 'an address above the maximum size of a bitmap', inside: true },
  { address: 'garbage', cidr: '10.0.0.0/12', why: 'not an address', inside: false },
])('an audit of $cidr records the claim of $address ($why): $inside', ({ address, cidr, inside }) => {
  expect(codeOf(rangeOf(cidr).claim(address, BY))).toBe(inside ? 'recorded' : 'NotInRange');
});

test('a second claim of an address is a duplicate, even if the claim spells the address in another way', () => {
  const range = rangeOf('10.0.0.0/12');
  const claims = ['10.0.0.5', '::ffff:10.0.0.5'].map((text) => codeOf(range.claim(text, BY)));
  expect(claims).toEqual(['recorded', 'AlreadyAllocated']);
  const { allocated, free, capacity } = range.counts();
  expect([allocated, capacity - free]).toEqual([1, 1]);
});

test.each([
  { cidr: '10.0.0.0/12', capacity: 1_048_574 },
  { cidr: 'fd00::/108', capacity: 1_048_575 },
  { cidr: 'fd00::/64', capacity: Number.MAX_SAFE_INTEGER },
])('the audit of a range returns the capacity of $cidr', ({ cidr, capacity }) => {
  const { counts, findings } = auditRange(rangeOf(cidr), WORDS, undefined, 1);
  expect([counts, findings]).toEqual([{ allocated: 0, free: capacity, capacity }, []]);
});

test('an audit returns a usage bitmap for the range of all 65,536 ports, and no bitmap for a range with more bits', () => {
  for (const cidr of ['10.0.0.0/15', 'fd00::/108']) {
    expect(auditRange(rangeOf(cidr), WORDS, undefined, 1).next).toBeUndefined();
  }
  const range = made(startAudit(RANGE_KEYS.nodePorts, '0-65535'));
  range.claim('65535', BY);
  expect([...bitsOf(auditRange(range, WORDS, undefined, 1).next?.data ?? new Uint8Array(0))]).toEqual([65_535]);
});

function cidr(name: string, texts: readonly string[], ready = true) {
  return { name, networks: texts.map((text) => parseCidr(text) as Network), ready };
}

const address = (host: number) => `10.0.0.${host}`;
const aNetwork = fc
  .tuple(fc.nat(255), fc.integer({ min: 24, max: 32 }))
  .map(([host, bits]) => `${address(host)}/${bits}`);

test('each address is counted once in each ServiceCIDR that contains it, and once in the sum of all ready ServiceCIDRs', () => {
  const aCidr = fc.record({ networks: fc.tuple(aNetwork), ready: fc.boolean() });
  const cidrs = fc.array(aCidr, { minLength: 1, maxLength: 8 });
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
      const used = served.filter((host) => hosts.includes(host)).length;
      expect(usage.sums).toEqual([{ family: 'IPv4', networks: given.length, used, capacity: served.length }]);
      for (const { name, used } of usage.networks) {
        const own = given.find((one) => one.name === name);
        expect(used).toBe(all.filter((host) => own && hosts.includes(host) && usable(own, host)).length);
      }
    }),
  );
});

test('the usage of a network has one cell per address, or 256 cells if the network has more than 256 addresses', () => {
  const taken = ['10.0.0.1', 'fd00::1', 'fd00::ffff:ffff:ffff:ffff', 'fd00:1::5', 'not an address'];
  const usage = serviceCidrUsage([cidr('a', ['10.0.0.0/29', 'fd00::/64']), cidr('b', ['fd00:1::/108'])], taken);
  const { sums, networks } = usage;
  expect(networks.map(({ cells }) => cells.length)).toEqual([8, 256, 256]);
  expect(networks.map(({ cells }) => cells.replace(/0+/g, '.'))).toEqual(['.4.', '1.1', '1.']);
  expect(sums).toMatchObject([
    { used: 1, capacity: 6 },
    { used: 3, capacity: Number.MAX_SAFE_INTEGER },
  ]);
});

test('serviceCidrUsage returns the usage of the default ServiceCIDR and of the 15 fullest ServiceCIDRs', () => {
  const many = Array.from({ length: 100 }, (_, n) => cidr(`c${n}`, [`10.1.${n}.0/24`]));
  const { networks, sums } = serviceCidrUsage([cidr('kubernetes', ['10.0.0.0/24']), ...many], ['10.1.77.1']);
  expect(networks.slice(0, 2).map(({ name }) => name)).toEqual(['kubernetes', 'c77']);
  expect([networks.length, sums[0]?.networks]).toEqual([16, 101]);
});

test('a family is reported as full if none of its ready ServiceCIDRs has a free address', () => {
  const full = [cidr('a', ['10.0.0.0/30', 'fd00::/126']), cidr('b', ['10.0.1.0/30'], false)];
  const messages = fullFamilies(serviceCidrUsage(full, ['10.0.0.1', '10.0.0.2'])).map(({ message }) => message);
  expect(messages).toEqual([expect.stringContaining('in the ServiceCIDRs 10.0.0.0/30, which have room for 2')]);
  const none = fullFamilies(serviceCidrUsage([cidr('a', ['10.0.0.0/30'], false)], []));
  const message = expect.stringContaining('IPv4, none of which is ready');
  expect(none).toMatchObject([{ type: 'nothingFree', message }]);
});
