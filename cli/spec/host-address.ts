import { addressOf, formatAddress, formatIPv4, type IPFamily, parseAddress } from '../../lib/allocator/ip-address.ts';
import { isGlobalUnicast, networkOf } from '../../lib/allocator/network.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';

/** The reason why no address was chosen, in the words of `k8s.io/apimachinery/pkg/util/net`. */
class NoAddress extends Error {}

export const IPV4_ROUTE_FILE = '/proc/net/route';
export const IPV6_ROUTE_FILE = '/proc/net/ipv6_route';

/** Texts of the kernel's route tables; absent if the file does not exist. */
interface RouteTables {
  /** `/proc/net/route` */
  readonly ipv4?: string;
  /** `/proc/net/ipv6_route` */
  readonly ipv6?: string;
}

interface DefaultRoute {
  readonly interfaceName: string;
  readonly family: IPFamily;
}

/** Reads IPv4 routes first. A fault in the IPv6 table counts as no IPv6 routes, one in the IPv4 table is thrown. */
function readDefaultRoutes(ipv4Table: string, ipv6Table: string): readonly DefaultRoute[] {
  const routes = parseDefaultRoutes(ipv4Table, 'IPv4');
  try {
    routes.push(...parseDefaultRoutes(ipv6Table, 'IPv6'));
  } catch (error) {
    if (!(error instanceof NoAddress)) throw error;
  }
  if (routes.length > 0) return routes;
  throw new NoAddress(`no default routes found in "${IPV4_ROUTE_FILE}" or "${IPV6_ROUTE_FILE}"`);
}

/** The indexes of the fields of a line. */
const FIELDS = {
  IPv4: { interface: 0, destination: 1, gateway: 2 },
  IPv6: { interface: 9, destination: 0, gateway: 4 },
} as const;

/** Masks do not count: destination zero is a default route. An IPv6 route without a gateway is the loopback's. */
function parseDefaultRoutes(table: string, family: IPFamily): DefaultRoute[] {
  const at = FIELDS[family];
  const none = family === 'IPv4' ? '0.0.0.0' : '::';
  const routes: DefaultRoute[] = [];
  for (const line of linesOf(table)) {
    const fields = line.trim().split(/\s+/);
    const destination = parseRouteAddress(fields[at.destination] ?? '', family);
    const gateway = parseRouteAddress(fields[at.gateway] ?? '', family);
    const isDefault = destination === none && (family === 'IPv4' || gateway !== none);
    if (isDefault) routes.push({ interfaceName: fields[at.interface] ?? '', family });
  }
  return routes;
}

/** Returns the canonical text of a hexadecimal address of a route table: IPv4 has its bytes in reverse. */
function parseRouteAddress(hex: string, family: IPFamily): string {
  if (hex === '') throw new NoAddress('input is nil');
  const stranger = /[^0-9a-f]/iu.exec(hex)?.[0];
  if (stranger !== undefined) throw new NoAddress(`encoding/hex: invalid byte: ${unicodeText(stranger)}`);
  if (hex.length % 2 !== 0) throw new NoAddress('encoding/hex: odd length hex string');
  if (hex.length !== (family === 'IPv4' ? 8 : 32)) throw new NoAddress(`invalid ${family} address in route`);
  if (family === 'IPv6') return formatAddress(addressOf(BigInt(`0x${hex}`)));
  const reversed = hex.replace(/(..)(..)(..)(..)/, '$4$3$2$1');
  return formatIPv4(Number.parseInt(reversed, 16));
}

/** Skips the header, which only the IPv4 table has, and a last line without a newline. */
function linesOf(table: string): string[] {
  const lines = table.split('\n').slice(0, -1);
  return lines.filter((line) => !line.startsWith('Iface'));
}

/** Go's `%#U`. */
function unicodeText(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `U+${code} '${character}'`;
}

/** A network interface, in the order of the host's list. */
export interface HostInterface {
  readonly name: string;
  readonly up: boolean;
  readonly loopback: boolean;
  readonly pointToPoint: boolean;
  /** Addresses with prefix lengths, such as `10.0.0.5/24`. */
  readonly addresses: readonly string[];
}

export interface HostNetwork {
  readonly routes: RouteTables;
  readonly interfaces: readonly HostInterface[];
}

/** `address`: canonical text. */
export type AddressChoice =
  | { readonly outcome: 'chosen'; readonly address: string }
  | { readonly outcome: 'none'; readonly message: string };

/** IPv4 is preferred, as by an API server without a bind address. */
const FAMILIES: readonly IPFamily[] = ['IPv4', 'IPv6'];

/**
 * Returns the address that an API server on this host publishes without `--advertise-address` and `--bind-address`
 * (`ChooseHostInterface` of the original): by default routes where the host has a route table, else by interfaces.
 */
export function chooseAdvertiseAddress(host: HostNetwork): AddressChoice {
  const { routes, interfaces } = host;
  try {
    const address =
      routes.ipv4 === undefined
        ? chooseByInterface(interfaces)
        : chooseByRoute(readDefaultRoutes(routes.ipv4, routes.ipv6 ?? ''), interfaces);
    return { outcome: 'chosen', address };
  } catch (error) {
    if (!(error instanceof NoAddress)) throw error;
    const message = `Unable to find suitable network address.error='${error.message}'. Try to set the AdvertiseAddress directly or provide a valid BindAddress to fix this.`;
    return { outcome: 'none', message };
  }
}

/**
 * Returns the first suitable address of a default route's interface. If the interfaces of a route have only link-local
 * addresses (RFC 5549), the host's own address is on its loopback, which is searched before the next route.
 */
function chooseByRoute(routes: readonly DefaultRoute[], interfaces: readonly HostInterface[]): string {
  for (const family of FAMILIES) {
    for (const { interfaceName } of routes.filter((route) => route.family === family)) {
      const found = addressOfInterface(interfaceName, interfaces, family) ?? addressOfLoopback(interfaces, family);
      if (found !== undefined) return found;
    }
  }
  throw new NoAddress('unable to select an IP from default routes.');
}

/** Returns the first suitable address of any interface that is up and not a loopback. */
function chooseByInterface(interfaces: readonly HostInterface[]): string {
  if (interfaces.length === 0) throw new NoAddress('no interfaces found on host.');
  const candidates = interfaces.filter(({ up, loopback, pointToPoint }) => up && !loopback && !pointToPoint);
  for (const family of FAMILIES) {
    for (const { name, addresses } of candidates) {
      const found = firstGlobalAddress(addresses, family, `unable to parse CIDR for interface "${name}": `);
      if (found !== undefined) return found;
    }
  }
  throw new NoAddress('no acceptable interface with global unicast address found on host');
}

function addressOfInterface(name: string, interfaces: readonly HostInterface[], family: IPFamily): string | undefined {
  const found = interfaces.find((candidate) => candidate.name === name);
  if (found === undefined) throw new NoAddress('route ip+net: no such network interface');
  return found.up ? firstGlobalAddress(found.addresses, family) : undefined;
}

function addressOfLoopback(interfaces: readonly HostInterface[], family: IPFamily): string | undefined {
  return interfaces
    .filter(({ up, loopback }) => up && loopback)
    .map(({ addresses }) => firstGlobalAddress(addresses, family))
    .find((address) => address !== undefined);
}

/** Returns the canonical text. @throws NoAddress if an earlier text is not a CIDR. */
function firstGlobalAddress(addresses: readonly string[], family: IPFamily, beginning = ''): string | undefined {
  for (const text of addresses) {
    const network = networkOf(text);
    if (isRefused(network)) throw new NoAddress(`${beginning}${network.message}`);
    const address = parseAddress(text.slice(0, text.indexOf('/')));
    if (address?.family === family && isGlobalUnicast(address)) return formatAddress(address);
  }
  return undefined;
}
