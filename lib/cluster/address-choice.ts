import { type Address, formatAddress, type IPFamily, parseAddress } from '../allocator/ip-address.ts';
import { networkOf } from '../allocator/network.ts';
import { isGlobalUnicast, isLoopback, isUnspecified } from './address-kind.ts';
import { type DefaultRoute, type RouteTables, readDefaultRoutes } from './default-routes.ts';
import { AddressChoiceError } from './errors.ts';

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
