import { describe, expect, test } from '@jest/globals';
import { parseAddress } from '../../lib/allocator/ip-address.ts';
import {
  type AddressChoice,
  addressOfInterface,
  addressOfLoopback,
  chooseAdvertiseAddress,
  chooseByInterface,
  chooseByRoute,
  chooseHostAddress,
  type DefaultRoute,
  firstGlobalAddress,
  type HostInterface,
  resolveBindAddress,
} from '../../lib/spec/host-address.ts';
import { ipv4Table, ipv6Table, routesIn } from './route-tables.ts';

const PREFER_IPV4 = ['IPv4', 'IPv6'] as const;
const PREFER_IPV6 = ['IPv6', 'IPv4'] as const;

const eth = (...addresses: string[]): HostInterface => {
  return { name: 'eth3', up: true, loopback: false, pointToPoint: false, addresses };
};
const lo = (...more: string[]): HostInterface => {
  return { name: 'lo', up: true, loopback: true, pointToPoint: false, addresses: ['::1/128', '127.0.0.1/8', ...more] };
};

const ipv4Only = [eth('fe80::2f7:6fff:fe6e:2956/64', '10.254.71.145/17')];
const ipv6Only = [eth('2001::200/64')];
const dual = [eth('2001::10/64', '10.254.71.145/17')];
const linkLocalOnly = [eth('169.254.162.166/16', 'fe80::200/10')];
const down = ipv4Only.map((own) => ({ ...own, up: false }));
const pointToPoint = ipv4Only.map((own) => ({ ...own, pointToPoint: true }));
const withoutAddresses = [eth()];
const badAddress = [eth('10.20.30.40.50/24')];
const globalOnLoopback = [...linkLocalOnly, lo('10.1.1.1/32', 'fd00:1:1::1/128')];
const globalOnBoth = [
  eth('169.254.162.166/16', 'fe80::200/10', '192.168.1.1/31', 'fd00::200/127'),
  lo('10.1.1.1/32', 'fd00:1:1::1/128'),
];

const route4: DefaultRoute = { interfaceName: 'eth3', family: 'IPv4', gateway: '10.254.0.1' };
const route6: DefaultRoute = { interfaceName: 'eth3', family: 'IPv6', gateway: '2001:1::1' };

/** The address, or what the error says. */
const told = (answer: AddressChoice | string | undefined) => {
  if (answer instanceof Error) return answer.message;
  return typeof answer === 'object' ? answer.address : answer;
};

describe('the first global address', () => {
  test.each([
    { name: 'of no IPv4 address', addresses: ['2001::5/64'], family: 'IPv4', found: undefined },
    { name: 'of no IPv6 address', addresses: ['10.128.0.4/32'], family: 'IPv6', found: undefined },
    {
      name: 'of a wrong IPv4 address',
      addresses: ['10.20.30.40.50/24'],
      family: 'IPv4',
      found: 'invalid CIDR address: 10.20.30.40.50/24',
    },
    {
      name: 'of a wrong IPv6 address',
      addresses: ['fe80::2f7:67fff:fe6e:2956/64'],
      family: 'IPv6',
      found: 'invalid CIDR address: fe80::2f7:67fff:fe6e:2956/64',
    },
    { name: 'of a loopback one', addresses: ['127.0.0.1/24'], family: 'IPv4', found: undefined },
    { name: 'of an IPv6 loopback one', addresses: ['::1/128'], family: 'IPv6', found: undefined },
    { name: 'of a link-local one', addresses: ['169.254.1.10/16'], family: 'IPv4', found: undefined },
    { name: 'of an IPv6 link-local one', addresses: ['fe80::2f7:6fff:fe6e:2956/64'], family: 'IPv6', found: undefined },
    { name: 'of a multicast one', addresses: ['224.0.1.5/32', 'ff05::2/128'], family: 'IPv6', found: undefined },
    { name: 'of the broadcast one', addresses: ['255.255.255.255/32', '0.0.0.0/0'], family: 'IPv4', found: undefined },
    { name: 'of IPv4', addresses: ['10.254.12.132/17'], family: 'IPv4', found: '10.254.12.132' },
    { name: 'of IPv6', addresses: ['2001::5/64'], family: 'IPv6', found: '2001::5' },
    {
      name: 'of several',
      addresses: ['169.254.1.1/16', '10.0.0.2/8', '10.0.0.1/8'],
      family: 'IPv4',
      found: '10.0.0.2',
    },
    { name: 'of a mapped one', addresses: ['::ffff:10.0.0.2/128'], family: 'IPv4', found: '10.0.0.2' },
    { name: 'of nothing', addresses: [], family: 'IPv4', found: undefined },
  ] as const)('$name is $found', ({ addresses, family, found }) => {
    expect(told(firstGlobalAddress(addresses, family))).toBe(found);
  });
});

describe('the address of an interface', () => {
  test.each([
    { name: 'with IPv4', interfaces: ipv4Only, family: 'IPv4', found: '10.254.71.145' },
    { name: 'with IPv6', interfaces: ipv6Only, family: 'IPv6', found: '2001::200' },
    { name: 'without IPv4', interfaces: ipv6Only, family: 'IPv4', found: undefined },
    { name: 'without IPv6', interfaces: ipv4Only, family: 'IPv6', found: undefined },
    { name: 'that is down', interfaces: down, family: 'IPv4', found: undefined },
    { name: 'that is not there', interfaces: [], family: 'IPv4', found: 'route ip+net: no such network interface' },
    {
      name: 'with a wrong address',
      interfaces: badAddress,
      family: 'IPv4',
      found: 'invalid CIDR address: 10.20.30.40.50/24',
    },
  ] as const)('$name is $found', ({ interfaces, family, found }) => {
    expect(told(addressOfInterface('eth3', interfaces, family))).toBe(found);
  });
});

describe('the address of a loopback interface', () => {
  test.each([
    { name: 'with a global IPv4 one', interfaces: globalOnLoopback, family: 'IPv4', found: '10.1.1.1' },
    { name: 'with a global IPv6 one', interfaces: globalOnLoopback, family: 'IPv6', found: 'fd00:1:1::1' },
    { name: 'without a global IPv4 one', interfaces: [lo()], family: 'IPv4', found: undefined },
    { name: 'without a global IPv6 one', interfaces: [lo()], family: 'IPv6', found: undefined },
    { name: 'that is down', interfaces: [{ ...lo('10.1.1.1/32'), up: false }], family: 'IPv4', found: undefined },
  ] as const)('$name is $found', ({ interfaces, family, found }) => {
    expect(told(addressOfLoopback(interfaces, family))).toBe(found);
  });
});

describe('the choice by route', () => {
  const NONE = 'unable to select an IP from default routes.';

  test.each([
    { name: 'of IPv4', routes: [route4], interfaces: ipv4Only, prefer: PREFER_IPV4, found: '10.254.71.145' },
    {
      name: 'of IPv4 when IPv6 is preferred',
      routes: [route4],
      interfaces: ipv4Only,
      prefer: PREFER_IPV6,
      found: '10.254.71.145',
    },
    { name: 'of IPv6', routes: [route6], interfaces: ipv6Only, prefer: PREFER_IPV4, found: '2001::200' },
    {
      name: 'of IPv6 when it is preferred',
      routes: [route6],
      interfaces: ipv6Only,
      prefer: PREFER_IPV6,
      found: '2001::200',
    },
    { name: 'of both', routes: [route4, route6], interfaces: dual, prefer: PREFER_IPV4, found: '10.254.71.145' },
    {
      name: 'of both when IPv6 is preferred',
      routes: [route4, route6],
      interfaces: dual,
      prefer: PREFER_IPV6,
      found: '2001::10',
    },
    {
      name: 'of a global IPv4 address on the loopback',
      routes: [route4],
      interfaces: globalOnLoopback,
      prefer: PREFER_IPV4,
      found: '10.1.1.1',
    },
    {
      name: 'of a global IPv6 address on the loopback',
      routes: [route6],
      interfaces: globalOnLoopback,
      prefer: PREFER_IPV6,
      found: 'fd00:1:1::1',
    },
    {
      name: 'of both on the loopback',
      routes: [route4, route6],
      interfaces: globalOnLoopback,
      prefer: PREFER_IPV4,
      found: '10.1.1.1',
    },
    {
      name: 'of both on the loopback when IPv6 is preferred',
      routes: [route4, route6],
      interfaces: globalOnLoopback,
      prefer: PREFER_IPV6,
      found: 'fd00:1:1::1',
    },
    {
      name: 'of global addresses on the loopback without a route',
      routes: [],
      interfaces: globalOnLoopback,
      prefer: PREFER_IPV6,
      found: NONE,
    },
    {
      name: 'of IPv4 on interface and loopback',
      routes: [route4],
      interfaces: globalOnBoth,
      prefer: PREFER_IPV4,
      found: '192.168.1.1',
    },
    {
      name: 'of IPv6 on interface and loopback',
      routes: [route6],
      interfaces: globalOnBoth,
      prefer: PREFER_IPV6,
      found: 'fd00::200',
    },
    {
      name: 'of all on interface and loopback',
      routes: [route4, route6],
      interfaces: globalOnBoth,
      prefer: PREFER_IPV4,
      found: '192.168.1.1',
    },
    {
      name: 'of all on interface and loopback when IPv6 is preferred',
      routes: [route4, route6],
      interfaces: globalOnBoth,
      prefer: PREFER_IPV6,
      found: 'fd00::200',
    },
    {
      name: 'of all on interface and loopback without a route',
      routes: [],
      interfaces: globalOnBoth,
      prefer: PREFER_IPV6,
      found: NONE,
    },
    {
      name: 'of link-local addresses alone',
      routes: [route4],
      interfaces: linkLocalOnly,
      prefer: PREFER_IPV4,
      found: NONE,
    },
    { name: 'without a route', routes: [], interfaces: ipv4Only, prefer: PREFER_IPV4, found: NONE },
    {
      name: 'of a wrong address',
      routes: [route4],
      interfaces: badAddress,
      prefer: PREFER_IPV4,
      found: 'invalid CIDR address: 10.20.30.40.50/24',
    },
    {
      name: 'of an interface that is gone',
      routes: [route4],
      interfaces: [lo()],
      prefer: PREFER_IPV4,
      found: 'route ip+net: no such network interface',
    },
  ])('$name is $found', ({ routes, interfaces, prefer, found }) => {
    expect(told(chooseByRoute(routes, interfaces, prefer))).toBe(found);
  });

  test('asks the loopback for each route before the next route', () => {
    const routes = [
      { ...route4, interfaceName: 'eth3' },
      { ...route4, interfaceName: 'eth4' },
    ];
    const interfaces = [...globalOnLoopback, { ...eth('10.9.9.9/24'), name: 'eth4' }];
    expect(told(chooseByRoute(routes, interfaces, PREFER_IPV4))).toBe('10.1.1.1');
  });
});

describe('the choice by interface', () => {
  const NONE = 'no acceptable interface with global unicast address found on host';

  test.each([
    { name: 'of no interface', interfaces: [], prefer: PREFER_IPV4, found: 'no interfaces found on host.' },
    { name: 'of one that is down', interfaces: down, prefer: PREFER_IPV4, found: NONE },
    { name: 'of the loopback alone', interfaces: [lo('10.1.1.1/32')], prefer: PREFER_IPV4, found: NONE },
    { name: 'of a point-to-point link', interfaces: pointToPoint, prefer: PREFER_IPV4, found: NONE },
    { name: 'of one without addresses', interfaces: withoutAddresses, prefer: PREFER_IPV4, found: NONE },
    {
      name: 'of one with a wrong address',
      interfaces: badAddress,
      prefer: PREFER_IPV4,
      found: 'unable to parse CIDR for interface "eth3": invalid CIDR address: 10.20.30.40.50/24',
    },
    { name: 'of link-local addresses alone', interfaces: linkLocalOnly, prefer: PREFER_IPV4, found: NONE },
    { name: 'of IPv4', interfaces: ipv4Only, prefer: PREFER_IPV4, found: '10.254.71.145' },
    { name: 'of IPv4 when IPv6 is preferred', interfaces: ipv4Only, prefer: PREFER_IPV6, found: '10.254.71.145' },
    { name: 'of IPv6', interfaces: ipv6Only, prefer: PREFER_IPV4, found: '2001::200' },
    { name: 'of IPv6 when it is preferred', interfaces: ipv6Only, prefer: PREFER_IPV6, found: '2001::200' },
    { name: 'of both', interfaces: dual, prefer: PREFER_IPV4, found: '10.254.71.145' },
    { name: 'of both when IPv6 is preferred', interfaces: dual, prefer: PREFER_IPV6, found: '2001::10' },
  ])('$name is $found', ({ interfaces, prefer, found }) => {
    expect(told(chooseByInterface(interfaces, prefer))).toBe(found);
  });
});

describe("a host's address", () => {
  const ipv4 = ipv4Table([routesIn.gateway]);
  const ipv6 = ipv6Table([routesIn.gateway6]);

  test('is chosen by route where the host tells its routes', () => {
    expect(told(chooseHostAddress({ routes: { ipv4, ipv6 }, interfaces: globalOnLoopback }))).toBe('10.1.1.1');
  });

  test('is chosen by interface where there is no IPv4 route table', () => {
    expect(told(chooseHostAddress({ routes: { ipv6 }, interfaces: dual }))).toBe('10.254.71.145');
  });

  test('is not chosen by interface when the route table is wrong or has no default route', () => {
    expect(told(chooseHostAddress({ routes: { ipv4: 'eth0 0 0\n' }, interfaces: dual }))).toBe(
      'encoding/hex: odd length hex string',
    );
    expect(chooseHostAddress({ routes: { ipv4: '' }, interfaces: dual })).toMatchObject({ code: 'NoDefaultRoutes' });
  });
});

describe('a bind address', () => {
  const host = {
    routes: { ipv4: ipv4Table([routesIn.gateway]), ipv6: ipv6Table([routesIn.gateway6]) },
    interfaces: dual,
  };

  test.each([
    { bind: undefined, found: '10.254.71.145' },
    { bind: '0.0.0.0', found: '10.254.71.145' },
    { bind: '127.0.0.1', found: '10.254.71.145' },
    { bind: '::', found: '2001::10' },
    { bind: '::1', found: '2001::10' },
    { bind: '192.0.2.7', found: '192.0.2.7' },
    { bind: '169.254.0.7', found: '169.254.0.7' },
    { bind: '2001:DB8::7', found: '2001:db8::7' },
  ])('of $bind publishes $found', ({ bind, found }) => {
    expect(told(resolveBindAddress(bind === undefined ? undefined : parseAddress(bind), host))).toBe(found);
  });
});

describe('the advertised address', () => {
  const host = { routes: {}, interfaces: ipv4Only };
  const unspecified = { family: 'IPv4', value: 0n } as const;
  const address = (last: bigint) => ({ family: 'IPv4', value: 0x0a000000n + last }) as const;

  test.each([
    { name: 'the one that was told', addresses: { advertise: address(1n), external: address(2n) }, found: '10.0.0.1' },
    {
      name: 'the external one',
      addresses: { advertise: unspecified, external: address(2n), bind: address(3n) },
      found: '10.0.0.2',
    },
    { name: 'the bound one', addresses: { external: unspecified, bind: address(3n) }, found: '10.0.0.3' },
    { name: "the host's", addresses: {}, found: '10.254.71.145' },
  ])('is $name', ({ addresses, found }) => {
    expect(told(chooseAdvertiseAddress(addresses, host))).toBe(found);
  });

  test('says what to do when there is none', () => {
    expect(chooseAdvertiseAddress({}, { routes: {}, interfaces: [] })).toMatchObject({
      code: 'NoAddress',
      message:
        "Unable to find suitable network address.error='no interfaces found on host.'. Try to set the AdvertiseAddress directly or provide a valid BindAddress to fix this.",
    });
  });
});
