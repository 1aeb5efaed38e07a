import { addressOf, formatAddress, formatIPv4, type IPFamily } from '../allocator/ip-address.ts';
import { AddressChoiceError } from './errors.ts';

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
