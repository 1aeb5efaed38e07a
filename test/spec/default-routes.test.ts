import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  parseIPv4DefaultRoutes,
  parseIPv6DefaultRoutes,
  parseRouteAddress,
  readDefaultRoutes,
} from '../../lib/spec/host-address.ts';
import { ipv4Table, ipv6Table, routesIn } from './route-tables.ts';

const messageOf = (answer: unknown) => (answer instanceof Error ? answer.message : answer);

describe('the IPv4 route table', () => {
  const gateway = { interfaceName: 'eth3', family: 'IPv4', gateway: '10.254.0.1' };

  test.each([
    { name: 'the gateway first', lines: [routesIn.gateway, routesIn.link, routesIn.docker] },
    { name: 'the gateway in the middle', lines: [routesIn.link, routesIn.gateway, routesIn.docker] },
    { name: 'the gateway last', lines: [routesIn.docker, routesIn.link, routesIn.gateway] },
  ])('with $name has one default route', ({ lines }) => {
    expect(parseIPv4DefaultRoutes(ipv4Table(lines))).toEqual([gateway]);
  });

  test.each([
    { name: 'nothing but its header', lines: [] },
    { name: 'no route to everywhere', lines: [routesIn.docker, routesIn.link] },
  ])('with $name has no default route', ({ lines }) => {
    expect(parseIPv4DefaultRoutes(ipv4Table(lines))).toEqual([]);
  });

  test.each([
    {
      name: 'a destination too long',
      line: 'eth3\t0000FE0AA1\t00000000\t0001',
      message: 'invalid IPv4 address in route',
    },
    { name: 'a gateway too long', line: 'eth3\t00000000\t0100FE0AA1\t0003', message: 'invalid IPv4 address in route' },
    {
      name: 'odd hexadecimal',
      line: 'eth3\t00000000\t0100FE0AA\t0003',
      message: 'encoding/hex: odd length hex string',
    },
    { name: 'fields missing', line: 'eth3', message: 'input is nil' },
  ])('with $name is refused', ({ line, message }) => {
    expect(messageOf(parseIPv4DefaultRoutes(ipv4Table([routesIn.gateway, line])))).toBe(message);
  });

  test('has no last line that no newline ends', () => {
    expect(parseIPv4DefaultRoutes(ipv4Table([routesIn.gateway]).trimEnd())).toEqual([]);
  });

  test('has a default route whatever its mask is', () => {
    const half = 'eth3\t00000000\t0100FE0A\t0003\t0\t0\t1024\t00000080\t0\t0\t0';
    expect(parseIPv4DefaultRoutes(ipv4Table([half]))).toEqual([gateway]);
  });
});

describe('the IPv6 route table', () => {
  const gateway = { interfaceName: 'eth3', family: 'IPv6', gateway: '2001:1::1' };

  test.each([
    { name: 'the gateway first', lines: [routesIn.gateway6, routesIn.link6, routesIn.loopback6] },
    { name: 'the gateway in the middle', lines: [routesIn.link6, routesIn.gateway6, routesIn.loopback6] },
    { name: 'the gateway last', lines: [routesIn.link6, routesIn.loopback6, routesIn.gateway6] },
  ])('with $name has one default route', ({ lines }) => {
    expect(parseIPv6DefaultRoutes(ipv6Table(lines))).toEqual([gateway]);
  });

  test.each([
    { name: 'nothing', lines: [] },
    { name: "none but the loopback's, which has no gateway", lines: [routesIn.loopback6, routesIn.link6] },
  ])('with $name has no default route', ({ lines }) => {
    expect(parseIPv6DefaultRoutes(ipv6Table(lines))).toEqual([]);
  });

  const zeros = '0'.repeat(32);
  test.each([
    {
      name: 'a destination too short',
      line: `2001000200000000 7a ${zeros} 00 ${zeros} 0 0 0 0 lo`,
      message: 'invalid IPv6 address in route',
    },
    {
      name: 'a gateway too long',
      line: `${zeros} 00 ${zeros} 00 ${zeros}0012 0 0 0 0 eth3`,
      message: 'invalid IPv6 address in route',
    },
    {
      name: 'odd hexadecimal',
      line: `${zeros}0 00 ${zeros} 00 ${zeros} 0 0 0 0 eth3`,
      message: 'encoding/hex: odd length hex string',
    },
    { name: 'an empty line', line: '', message: 'input is nil' },
  ])('with $name is refused', ({ line, message }) => {
    expect(messageOf(parseIPv6DefaultRoutes(ipv6Table([routesIn.gateway6, line])))).toBe(message);
  });
});

describe('an address of a route table', () => {
  test.each([
    { name: 'nothing', hex: '', family: 'IPv4', is: 'input is nil' },
    { name: 'too short', hex: 'AA', family: 'IPv4', is: 'invalid IPv4 address in route' },
    { name: 'too long', hex: '0011223344', family: 'IPv4', is: 'invalid IPv4 address in route' },
    { name: 'no hexadecimal', hex: 'invalid!', family: 'IPv4', is: "encoding/hex: invalid byte: U+0069 'i'" },
    { name: 'zero', hex: '00000000', family: 'IPv4', is: '0.0.0.0' },
    { name: 'all ones', hex: 'FFFFFFFF', family: 'IPv4', is: '255.255.255.255' },
    { name: 'IPv4, its bytes in reverse', hex: '12345678', family: 'IPv4', is: '120.86.52.18' },
    { name: 'IPv6', hex: 'fe800000000000000000000000000000', family: 'IPv6', is: 'fe80::' },
    {
      name: 'IPv6 too short',
      hex: 'fe80000000000000021fcafffea0ec0',
      family: 'IPv6',
      is: 'encoding/hex: odd length hex string',
    },
    {
      name: 'IPv6 too long',
      hex: 'fe80000000000000021fcafffea0ec0002',
      family: 'IPv6',
      is: 'invalid IPv6 address in route',
    },
  ] as const)('that is $name is read as $is', ({ hex, family, is }) => {
    expect(messageOf(parseRouteAddress(hex, family))).toBe(is);
  });

  test('is the one whose bytes were written in reverse', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 4, maxLength: 4 }), (bytes) => {
        const hex = [...bytes]
          .reverse()
          .map((byte) => byte.toString(16).padStart(2, '0'))
          .join('');
        expect(parseRouteAddress(hex, 'IPv4')).toBe(bytes.join('.'));
      }),
    );
  });
});

describe('all default routes', () => {
  const noIPv4 = ipv4Table([routesIn.docker]);
  const someIPv4 = ipv4Table([routesIn.gateway]);
  const noIPv6 = ipv6Table([routesIn.loopback6]);
  const someIPv6 = ipv6Table([routesIn.gateway6]);
  const families = (answer: ReturnType<typeof readDefaultRoutes>) =>
    answer instanceof Error ? answer.message : answer.map(({ family }) => family);

  test.each([
    { name: 'IPv4 alone', tables: { ipv4: someIPv4, ipv6: noIPv6 }, found: ['IPv4'] },
    { name: 'IPv6 alone', tables: { ipv4: noIPv4, ipv6: someIPv6 }, found: ['IPv6'] },
    { name: 'IPv4 before IPv6', tables: { ipv4: someIPv4, ipv6: someIPv6 }, found: ['IPv4', 'IPv6'] },
    { name: 'IPv4 when there is no IPv6 table', tables: { ipv4: someIPv4 }, found: ['IPv4'] },
    { name: 'IPv4 when the IPv6 table is wrong', tables: { ipv4: someIPv4, ipv6: 'x\n' }, found: ['IPv4'] },
  ])('are $name', ({ tables, found }) => {
    expect(families(readDefaultRoutes(tables))).toEqual(found);
  });

  test('are none: an error that can be told from others', () => {
    expect(readDefaultRoutes({ ipv4: noIPv4, ipv6: noIPv6 })).toMatchObject({
      code: 'NoDefaultRoutes',
      message: 'no default routes found in "/proc/net/route" or "/proc/net/ipv6_route"',
    });
  });

  test('cannot be read without an IPv4 table', () => {
    expect(readDefaultRoutes({ ipv6: someIPv6 })).toMatchObject({
      code: 'BadRoutes',
      message: expect.stringContaining('no such file'),
    });
  });

  test('cannot be read when the IPv4 table is wrong', () => {
    expect(families(readDefaultRoutes({ ipv4: 'eth0\tx\t0\n', ipv6: someIPv6 }))).toBe(
      "encoding/hex: invalid byte: U+0078 'x'",
    );
  });
});
