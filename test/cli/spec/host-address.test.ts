import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { chooseAdvertiseAddress, type HostInterface } from '../../../cli/spec/host-address.ts';

const HEADER = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT   ';
const ZERO = '0'.repeat(32);

/** Lines as the kernel writes them. */
const GATEWAY = 'eth3\t00000000\t0100FE0A\t0003\t0\t0\t1024\t00000000\t0\t0\t0   ';
const LINK = 'eth3\t0000FE0A\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0   ';
const DOCKER = 'docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0   ';
const GATEWAY6 = `${ZERO} 00 ${ZERO} 00 20010001000000000000000000000001 00000064 00000000 00000000 00000003     eth3`;
const LINK6 = `20010002000000000000000000000000 40 ${ZERO} 00 ${ZERO} 00000100 00000000 00000000 00000001     eth3`;
const LOOPBACK6 = `${ZERO} 60 ${ZERO} 00 ${ZERO} 00000400 00000000 00000000 00200200       lo`;

/** The text of `/proc/net/route`. */
const ipv4Table = (...lines: readonly string[]) => [HEADER, ...lines].map((line) => `${line}\n`).join('');
/** The text of `/proc/net/ipv6_route`. */
const ipv6Table = (...lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');

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
const badAddress = [eth('10.20.30.40.50/24')];
const globalOnLoopback = [...linkLocalOnly, lo('10.1.1.1/32', 'fd00:1:1::1/128')];
const globalOnBoth = [
  eth('169.254.162.166/16', 'fe80::200/10', '192.168.1.1/31', 'fd00::200/127'),
  lo('10.1.1.1/32', 'fd00:1:1::1/128'),
];

interface Routes {
  readonly ipv4?: readonly string[];
  readonly ipv6?: readonly string[];
}

/** The address, or the cause of the error. */
function chosen({ ipv4, ipv6 }: Routes, interfaces: readonly HostInterface[]): string {
  const routes = { ...(ipv4 && { ipv4: ipv4Table(...ipv4) }), ...(ipv6 && { ipv6: ipv6Table(...ipv6) }) };
  const choice = chooseAdvertiseAddress({ routes, interfaces });
  return choice.outcome === 'chosen' ? choice.address : reasonIn(choice.message);
}

const reasonIn = (message: string) => /\.error='(.*)'\. Try to set/s.exec(message)?.[1] ?? message;

const NO_ROUTES = 'no default routes found in "/proc/net/route" or "/proc/net/ipv6_route"';

describe('the default routes of a host', () => {
  test.each([
    { name: 'the gateway first', ipv4: [GATEWAY, LINK, DOCKER] },
    { name: 'the gateway in the middle', ipv4: [LINK, GATEWAY, DOCKER] },
    { name: 'the gateway last', ipv4: [DOCKER, LINK, GATEWAY] },
    { name: 'any mask', ipv4: ['eth3\t00000000\t0100FE0A\t0003\t0\t0\t1024\t00000080\t0\t0\t0'] },
    { name: 'no IPv6 table', ipv4: [GATEWAY], ipv6: undefined },
    { name: 'a bad IPv6 table', ipv4: [GATEWAY], ipv6: ['x'] },
    { name: 'IPv6 as well', ipv4: [GATEWAY], ipv6: [GATEWAY6] },
  ])('the default routes of a host are read for IPv4 with $name', ({ ipv4, ipv6 = [LOOPBACK6] }) => {
    expect(chosen({ ipv4, ipv6 }, dual)).toBe('10.254.71.145');
  });

  test.each([
    { name: 'the gateway first', ipv6: [GATEWAY6, LINK6, LOOPBACK6] },
    { name: 'the gateway in the middle', ipv6: [LINK6, GATEWAY6, LOOPBACK6] },
    { name: 'the gateway last', ipv6: [LINK6, LOOPBACK6, GATEWAY6] },
  ])('the default routes of a host are read for IPv6 with $name', ({ ipv6 }) => {
    expect(chosen({ ipv4: [DOCKER], ipv6 }, dual)).toBe('2001::10');
  });

  test.each([
    { name: 'no route to everywhere', ipv4: [DOCKER, LINK], ipv6: [LINK6] },
    { name: "the loopback's, which has no gateway", ipv4: [], ipv6: [LOOPBACK6] },
    { name: 'a destination too short', ipv4: [], ipv6: [`2001000200000000 7a ${ZERO} 00 ${ZERO} 0 0 0 0 lo`] },
    { name: 'a gateway too long', ipv4: [], ipv6: [`${ZERO} 00 ${ZERO} 00 ${ZERO}0012 0 0 0 0 eth3`] },
    { name: 'odd hexadecimal', ipv4: [], ipv6: [`${ZERO}0 00 ${ZERO} 00 ${ZERO} 0 0 0 0 eth3`] },
    { name: 'an empty line', ipv4: [], ipv6: [GATEWAY6, ''] },
  ])('a host has no default route with $name', ({ ipv4, ipv6 }) => {
    expect(chosen({ ipv4, ipv6 }, dual)).toBe(NO_ROUTES);
  });

  test.each([
    { line: 'eth3\t0000FE0AA1\t00000000\t0001', message: 'invalid IPv4 address in route' },
    { line: 'eth3\t00000000\t0100FE0AA1\t0003', message: 'invalid IPv4 address in route' },
    { line: 'eth3\tAA\t00000000\t0003', message: 'invalid IPv4 address in route' },
    { line: 'eth3\t00000000\t0100FE0AA\t0003', message: 'encoding/hex: odd length hex string' },
    { line: 'eth3\tinvalid!\t00000000\t0003', message: "encoding/hex: invalid byte: U+0069 'i'" },
    { line: 'eth3', message: 'input is nil' },
  ])('the default routes of a host cannot be read from $line', ({ line, message }) => {
    expect(chosen({ ipv4: [GATEWAY, line], ipv6: [GATEWAY6] }, dual)).toBe(message);
  });

  test('the default routes of a host do not include a last line without a newline', () => {
    const routes = { ipv4: ipv4Table(GATEWAY).trimEnd() };
    const message = expect.stringContaining(NO_ROUTES);
    expect(chooseAdvertiseAddress({ routes, interfaces: dual })).toEqual({ outcome: 'none', message });
  });

  test('a route is a default route only if its hexadecimal destination is zero', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 4, maxLength: 4 }), (bytes) => {
        const hex = Buffer.from(bytes).toString('hex');
        const isEverywhere = bytes.every((byte) => byte === 0);
        const found = chosen({ ipv4: [`eth3\t${hex}\t0100FE0A\t0003`] }, dual);
        expect(found).toBe(isEverywhere ? '10.254.71.145' : NO_ROUTES);
      }),
    );
  });
});

describe('the address of a host', () => {
  const NO_ADDRESS = 'unable to select an IP from default routes.';
  const both = { ipv4: [GATEWAY], ipv6: [GATEWAY6] };

  test.each([
    { name: 'IPv4', routes: { ipv4: [GATEWAY] }, interfaces: ipv4Only, found: '10.254.71.145' },
    { name: 'IPv6', routes: { ipv4: [], ipv6: [GATEWAY6] }, interfaces: ipv6Only, found: '2001::200' },
    { name: 'both', routes: both, interfaces: dual, found: '10.254.71.145' },
    { name: 'IPv6, with routes for both', routes: both, interfaces: ipv6Only, found: '2001::200' },
    { name: 'a global one on the loopback', routes: both, interfaces: globalOnLoopback, found: '10.1.1.1' },
    {
      name: 'a global IPv6 one on the loopback',
      routes: { ipv4: [], ipv6: [GATEWAY6] },
      interfaces: globalOnLoopback,
      found: 'fd00:1:1::1',
    },
    { name: 'global ones on interface and loopback', routes: both, interfaces: globalOnBoth, found: '192.168.1.1' },
    {
      name: 'a global IPv6 one on interface and loopback',
      routes: { ipv4: [], ipv6: [GATEWAY6] },
      interfaces: globalOnBoth,
      found: 'fd00::200',
    },
    { name: 'link-local ones alone', routes: both, interfaces: linkLocalOnly, found: NO_ADDRESS },
    {
      name: 'one on a loopback that is down',
      routes: both,
      interfaces: [...linkLocalOnly, { ...lo('10.1.1.1/32'), up: false }],
      found: NO_ADDRESS,
    },
    { name: 'one that is down', routes: both, interfaces: down, found: NO_ADDRESS },
    {
      name: 'a wrong address',
      routes: both,
      interfaces: badAddress,
      found: 'invalid CIDR address: 10.20.30.40.50/24',
    },
    {
      name: 'no such interface',
      routes: both,
      interfaces: [lo()],
      found: 'route ip+net: no such network interface',
    },
  ])('the address chosen by a route, with $name, is $found', ({ routes, interfaces, found }) => {
    expect(chosen(routes, interfaces)).toBe(found);
  });

  test('the address chosen by a route is that of the loopback before that of the next route', () => {
    const interfaces = [...globalOnLoopback, { ...eth('10.9.9.9/24'), name: 'eth4' }];
    expect(chosen({ ipv4: [GATEWAY, GATEWAY.replace('eth3', 'eth4')] }, interfaces)).toBe('10.1.1.1');
  });

  const NO_INTERFACE = 'no acceptable interface with global unicast address found on host';
  const inInterface = 'unable to parse CIDR for interface "eth3": invalid CIDR address:';
  test.each([
    { name: 'no interface', interfaces: [], found: 'no interfaces found on host.' },
    { name: 'one that is down', interfaces: down, found: NO_INTERFACE },
    { name: 'the loopback alone', interfaces: [lo('10.1.1.1/32')], found: NO_INTERFACE },
    { name: 'a point-to-point link', interfaces: pointToPoint, found: NO_INTERFACE },
    { name: 'no address', interfaces: [eth()], found: NO_INTERFACE },
    { name: 'a wrong IPv4 address', interfaces: badAddress, found: `${inInterface} 10.20.30.40.50/24` },
    {
      name: 'a wrong IPv6 address',
      interfaces: [eth('fe80::2f7:67fff:fe6e:2956/64')],
      found: `${inInterface} fe80::2f7:67fff:fe6e:2956/64`,
    },
    { name: 'link-local ones alone', interfaces: linkLocalOnly, found: NO_INTERFACE },
    { name: 'loopback ones alone', interfaces: [eth('127.0.0.1/24', '::1/128')], found: NO_INTERFACE },
    { name: 'multicast ones alone', interfaces: [eth('224.0.1.5/32', 'ff05::2/128')], found: NO_INTERFACE },
    { name: 'the broadcast one', interfaces: [eth('255.255.255.255/32', '0.0.0.0/0')], found: NO_INTERFACE },
    { name: 'IPv4', interfaces: ipv4Only, found: '10.254.71.145' },
    { name: 'IPv6', interfaces: ipv6Only, found: '2001::200' },
    { name: 'both', interfaces: dual, found: '10.254.71.145' },
    { name: 'several', interfaces: [eth('169.254.1.1/16', '10.0.0.2/8', '10.0.0.1/8')], found: '10.0.0.2' },
    { name: 'a mapped one', interfaces: [eth('::ffff:10.0.0.2/128')], found: '10.0.0.2' },
  ])(
    'the address of a host without an IPv4 route table is chosen by interface: with $name, $found',
    ({ interfaces, found }) => {
      expect(chosen({ ipv6: [GATEWAY6] }, interfaces)).toBe(found);
    },
  );

  test('a missing address has a resolution', () => {
    expect(chooseAdvertiseAddress({ routes: {}, interfaces: [] })).toEqual({
      outcome: 'none',
      message:
        "Unable to find suitable network address.error='no interfaces found on host.'. Try to set the AdvertiseAddress directly or provide a valid BindAddress to fix this.",
    });
  });
});
