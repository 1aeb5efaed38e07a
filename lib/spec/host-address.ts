import {
  type Address,
  addressOf,
  formatAddress,
  formatIPv4,
  type IPFamily,
  parseAddress,
} from '../allocator/ip-address.ts';
import { isGlobalUnicast, isLoopback, isUnspecified, networkOf } from '../allocator/network.ts';

export type AddressChoiceErrorCode =
  /** `IsNoRoutesError` of the original: there is no default route at all. */
  | 'NoDefaultRoutes'
  /** A route table that does not parse. */
  | 'BadRoutes'
  /** An interface that is not there, or whose address does not parse. */
  | 'BadInterface'
  /** Nothing on this host is fit to be published. */
  | 'NoAddress';

/** Why no address could be chosen; returned, not thrown. Messages are those of `k8s.io/apimachinery/pkg/util/net`. */
export class AddressChoiceError extends Error {
  override readonly name = 'AddressChoiceError';
  readonly code: AddressChoiceErrorCode;

  constructor(code: AddressChoiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export const IPV4_ROUTE_FILE = '/proc/net/route';
export const IPV6_ROUTE_FILE = '/proc/net/ipv6_route';

/** Texts of the kernel's route tables; absent when there is no such file. */
export interface RouteTables {
  /** `/proc/net/route` */
  readonly ipv4?: string;
  /** `/proc/net/ipv6_route` */
  readonly ipv6?: string;
}

/** A route to everywhere. */
export interface DefaultRoute {
  readonly interfaceName: string;
  readonly family: IPFamily;
  /** Canonical text. */
  readonly gateway: string;
}

/** IPv4 routes first. A fault in the IPv6 table counts as no IPv6 routes, one in the IPv4 table is the answer. */
export function readDefaultRoutes(tables: RouteTables): readonly DefaultRoute[] | AddressChoiceError {
  if (tables.ipv4 === undefined) return badRoutes(`open ${IPV4_ROUTE_FILE}: no such file or directory`);
  const ipv4 = parseIPv4DefaultRoutes(tables.ipv4);
  if (ipv4 instanceof AddressChoiceError) return ipv4;

  const ipv6 = parseIPv6DefaultRoutes(tables.ipv6 ?? '');
  const routes = ipv6 instanceof AddressChoiceError ? ipv4 : [...ipv4, ...ipv6];
  if (routes.length > 0) return routes;
  const message = `no default routes found in "${IPV4_ROUTE_FILE}" or "${IPV6_ROUTE_FILE}"`;
  return new AddressChoiceError('NoDefaultRoutes', message);
}

/** Fields: interface, destination, gateway. Masks are not looked at: destination zero is a default route. */
export function parseIPv4DefaultRoutes(table: string): readonly DefaultRoute[] | AddressChoiceError {
  const routes: DefaultRoute[] = [];
  for (const line of linesOf(table)) {
    if (line.startsWith('Iface')) continue;
    const [interfaceName = '', destinationText = '', gatewayText = ''] = fieldsOf(line);
    const destination = parseRouteAddress(destinationText, 'IPv4');
    const gateway = parseRouteAddress(gatewayText, 'IPv4');
    if (destination instanceof Error) return destination;
    if (gateway instanceof Error) return gateway;
    if (destination === '0.0.0.0') routes.push({ interfaceName, family: 'IPv4', gateway });
  }
  return routes;
}

/** Fields 0, 4 and 9: destination, gateway, interface. A route without a gateway is the loopback's. */
export function parseIPv6DefaultRoutes(table: string): readonly DefaultRoute[] | AddressChoiceError {
  const routes: DefaultRoute[] = [];
  for (const line of linesOf(table)) {
    const fields = fieldsOf(line);
    const destination = parseRouteAddress(fields[0] ?? '', 'IPv6');
    const gateway = parseRouteAddress(fields[4] ?? '', 'IPv6');
    if (destination instanceof Error) return destination;
    if (gateway instanceof Error) return gateway;
    if (destination === '::' && gateway !== '::') {
      routes.push({ interfaceName: fields[9] ?? '', family: 'IPv6', gateway });
    }
  }
  return routes;
}

/** Canonical text of an address in hexadecimal, as route tables have it: IPv4 has its bytes in reverse. */
export function parseRouteAddress(hex: string, family: IPFamily): string | AddressChoiceError {
  if (hex === '') return badRoutes('input is nil');
  const stranger = /[^0-9a-f]/iu.exec(hex)?.[0];
  if (stranger !== undefined) return badRoutes(`encoding/hex: invalid byte: ${unicodeText(stranger)}`);
  if (hex.length % 2 !== 0) return badRoutes('encoding/hex: odd length hex string');
  if (hex.length !== (family === 'IPv4' ? 8 : 32)) return badRoutes(`invalid ${family} address in route`);
  if (family === 'IPv6') return formatAddress(addressOf(BigInt(`0x${hex}`)));
  const reversed = hex.replace(/(..)(..)(..)(..)/, '$4$3$2$1');
  return formatIPv4(Number.parseInt(reversed, 16));
}

/** A last line that no newline ends is not looked at. */
function linesOf(table: string): string[] {
  return table.split('\n').slice(0, -1);
}

function fieldsOf(line: string): string[] {
  return line.trim().split(/\s+/);
}

/** Go's `%#U`. */
function unicodeText(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `U+${code} '${character}'`;
}

function badRoutes(message: string): AddressChoiceError {
  return new AddressChoiceError('BadRoutes', message);
}

/** A network interface, in the order in which the host lists them. */
export interface HostInterface {
  readonly name: string;
  readonly up: boolean;
  readonly loopback: boolean;
  readonly pointToPoint: boolean;
  /** With their prefix lengths: `10.0.0.5/24`. */
  readonly addresses: readonly string[];
}

/** What a host is asked for its address. */
export interface HostNetwork {
  readonly routes: RouteTables;
  readonly interfaces: readonly HostInterface[];
}

/** `address`: canonical text. */
export type AddressChoice = { readonly address: string } | AddressChoiceError;

/** Addresses as the flags of the API server give them; absent and unspecified (`0.0.0.0`, `::`) are the same. */
export interface ServingAddresses {
  readonly advertise?: Address;
  readonly external?: Address;
  readonly bind?: Address;
}

type Preference = readonly [IPFamily, IPFamily];
const IPV4_FIRST: Preference = ['IPv4', 'IPv6'];
const IPV6_FIRST: Preference = ['IPv6', 'IPv4'];

/** The address that an API server publishes: as told, else as bound, else the host's own. */
export function chooseAdvertiseAddress(told: ServingAddresses, host: HostNetwork): AddressChoice {
  const address = specified(told.advertise) ?? specified(told.external);
  if (address !== undefined) return { address: formatAddress(address) };

  const choice = resolveBindAddress(told.bind, host);
  if (!(choice instanceof AddressChoiceError)) return choice;
  const message = `Unable to find suitable network address.error='${choice.message}'. Try to set the AdvertiseAddress directly or provide a valid BindAddress to fix this.`;
  return new AddressChoiceError(choice.code, message, { cause: choice });
}

/** What to publish when serving on `bind`: itself, unless it is absent, unspecified or loopback. */
export function resolveBindAddress(bind: Address | undefined, host: HostNetwork): AddressChoice {
  if (bind !== undefined && !isUnspecified(bind) && !isLoopback(bind)) return { address: formatAddress(bind) };
  return chooseHostAddress(host, bind?.family === 'IPv6' ? IPV6_FIRST : IPV4_FIRST);
}

/** `ChooseHostInterface` of the original: by default routes where the host tells them, else by interfaces. */
export function chooseHostAddress(host: HostNetwork, preference: Preference = IPV4_FIRST): AddressChoice {
  if (host.routes.ipv4 === undefined) return chooseByInterface(host.interfaces, preference);
  const routes = readDefaultRoutes(host.routes);
  return routes instanceof AddressChoiceError ? routes : chooseByRoute(routes, host.interfaces, preference);
}

/**
 * The first fit address of a default route's interface. Where a route's interfaces have link-local addresses alone
 * (RFC 5549) the host's own is on its loopback, and that is asked before the next route.
 */
export function chooseByRoute(
  routes: readonly DefaultRoute[],
  interfaces: readonly HostInterface[],
  preference: Preference,
): AddressChoice {
  for (const family of preference) {
    for (const route of routes.filter((candidate) => candidate.family === family)) {
      const address =
        addressOfInterface(route.interfaceName, interfaces, family) ?? addressOfLoopback(interfaces, family);
      if (address !== undefined) return asChoice(address);
    }
  }
  return noAddress('unable to select an IP from default routes.');
}

/** The first fit address of any interface that is up and leads to a network. */
export function chooseByInterface(interfaces: readonly HostInterface[], preference: Preference): AddressChoice {
  if (interfaces.length === 0) return noAddress('no interfaces found on host.');
  const candidates = interfaces.filter(({ up, loopback, pointToPoint }) => up && !loopback && !pointToPoint);
  for (const family of preference) {
    for (const { name, addresses } of candidates) {
      const address = firstGlobalAddress(addresses, family);
      if (address instanceof AddressChoiceError) {
        const message = `unable to parse CIDR for interface "${name}": ${address.message}`;
        return new AddressChoiceError('BadInterface', message, { cause: address });
      }
      if (address !== undefined) return asChoice(address);
    }
  }
  return noAddress('no acceptable interface with global unicast address found on host');
}

/** `undefined`: none of the family is there. */
export function addressOfInterface(
  name: string,
  interfaces: readonly HostInterface[],
  family: IPFamily,
): string | AddressChoiceError | undefined {
  const found = interfaces.find((candidate) => candidate.name === name);
  if (found === undefined) return new AddressChoiceError('BadInterface', 'route ip+net: no such network interface');
  return found.up ? firstGlobalAddress(found.addresses, family) : undefined;
}

export function addressOfLoopback(
  interfaces: readonly HostInterface[],
  family: IPFamily,
): string | AddressChoiceError | undefined {
  return interfaces
    .filter(({ up, loopback }) => up && loopback)
    .map(({ addresses }) => firstGlobalAddress(addresses, family))
    .find((address) => address !== undefined);
}

/** Canonical text; an error when a text before it is no CIDR. */
export function firstGlobalAddress(
  addresses: readonly string[],
  family: IPFamily,
): string | AddressChoiceError | undefined {
  for (const text of addresses) {
    const network = networkOf(text);
    if (network instanceof Error) return new AddressChoiceError('BadInterface', network.message, { cause: network });
    const address = parseAddress(text.slice(0, text.indexOf('/')));
    if (address?.family === family && isGlobalUnicast(address)) return formatAddress(address);
  }
  return undefined;
}

function specified(address: Address | undefined): Address | undefined {
  return address === undefined || isUnspecified(address) ? undefined : address;
}

function asChoice(found: string | AddressChoiceError): AddressChoice {
  return found instanceof AddressChoiceError ? found : { address: found };
}

function noAddress(message: string): AddressChoiceError {
  return new AddressChoiceError('NoAddress', message);
}
