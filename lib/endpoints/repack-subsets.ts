import { inCanonicalOrder, printPort, printSubset } from './canonical-order.ts';
import type { EndpointAddress, EndpointPort, EndpointSubset } from './objects.ts';

/** One port, and who offers it: readiness by address key. No port at all is an offer too. */
interface Offer {
  readonly port: EndpointPort | undefined;
  readonly readiness: Map<string, boolean>;
}

/**
 * Subsets in their canonical form (`RepackSubsets` of `pkg/api/v1/endpoints/util.go`): each address once with the
 * first record that was found of it, not ready where any says so, and the ports that the same addresses offer together
 * in one subset.
 */
export function repackSubsets(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  const records = new Map<string, EndpointAddress>();
  const offers = collectOffers(subsets, records);
  const packed = [...groupBySameAddresses(offers).values()].map((group) => subsetOf(group, records));
  return inCanonicalOrder(packed, printSubset);
}

function collectOffers(subsets: readonly EndpointSubset[], records: Map<string, EndpointAddress>): Offer[] {
  const offers = new Map<unknown, Offer>();
  for (const subset of subsets) {
    for (const port of subset.ports?.length ? subset.ports : [undefined]) {
      const offer = offers.get(portKey(port)) ?? { port, readiness: new Map<string, boolean>() };
      offers.set(portKey(port), offer);
      noteAll(offer, subset, records);
    }
  }
  return [...offers.values()].filter(({ readiness }) => readiness.size > 0);
}

function noteAll(offer: Offer, subset: EndpointSubset, records: Map<string, EndpointAddress>): void {
  for (const address of subset.addresses ?? []) note(offer, address, true, records);
  for (const address of subset.notReadyAddresses ?? []) note(offer, address, false, records);
}

function note(offer: Offer, address: EndpointAddress, ready: boolean, records: Map<string, EndpointAddress>): void {
  const key = addressKey(address);
  if (!records.has(key)) records.set(key, address);
  offer.readiness.set(key, ready && offer.readiness.get(key) !== false);
}

function groupBySameAddresses(offers: readonly Offer[]): Map<string, Offer[]> {
  return Map.groupBy(offers, ({ readiness }) => JSON.stringify([...readiness].sort(byKey)));
}

function subsetOf(offers: readonly Offer[], records: ReadonlyMap<string, EndpointAddress>): EndpointSubset {
  const readiness = [...(offers[0]?.readiness ?? [])].sort(byKey);
  const those = (wanted: boolean) =>
    readiness.flatMap(([key, ready]) => (ready === wanted ? (records.get(key) ?? []) : []));
  const [addresses, notReadyAddresses] = [those(true), those(false)];
  const ports = inCanonicalOrder(
    offers.flatMap(({ port }) => port ?? []),
    printPort,
  );
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
    ...(ports.length > 0 && { ports }),
  };
}

/** An address is known by its text and the uid of what it stands for; both sort as text. */
function addressKey({ ip, targetRef }: EndpointAddress): string {
  return `${ip}\0${String(targetRef?.['uid'] ?? '')}`;
}

/** Two ports with an `appProtocol` are never the same one: the original compares its pointers. */
function portKey(port: EndpointPort | undefined): unknown {
  if (port?.appProtocol !== undefined) return port;
  return port && JSON.stringify([port.name ?? '', port.port, port.protocol ?? '']);
}

function byKey([one]: readonly [string, boolean], [other]: readonly [string, boolean]): number {
  return one < other ? -1 : Number(one > other);
}
