import type { EndpointAddress, EndpointPort, EndpointSubset } from './published-objects.ts';

/** Ports that occur in the same subsets. A subset without ports counts as a subset with the port `undefined`. */
interface PortGroup {
  readonly ports: (EndpointPort | undefined)[];
  readonly offeredBy: readonly EndpointSubset[];
}

/** The key and the readiness of each address, sorted by key. */
type Readiness = readonly (readonly [key: string, ready: boolean])[];

/**
 * Returns the subsets in canonical form (`RepackSubsets` of `pkg/api/v1/endpoints/util.go`). Of several records of an
 * address, the first stays. An address is not ready for a port if any subset with this port lists it as not ready. Ports
 * with the same addresses are in one subset. The function visits the addresses once for each group of ports, not for each port.
 *
 *     repackSubsets([
 *       { addresses: [{ ip: '10.0.0.2' }], ports: [https] },
 *       { addresses: [{ ip: '10.0.0.1' }], notReadyAddresses: [{ ip: '10.0.0.2' }], ports: [https] },
 *     ]); // [{ addresses: [{ ip: '10.0.0.1' }], notReadyAddresses: [{ ip: '10.0.0.2' }], ports: [https] }]
 */
export function repackSubsets(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  const records = recordsIn(subsets);
  const offers = portGroups(subsets).map(({ ports, offeredBy }) => ({ ports, readiness: readinessIn(offeredBy) }));
  const offered = offers.filter(({ readiness }) => readiness.length > 0);
  const ofSameAddresses = Map.groupBy(offered, ({ readiness }) => JSON.stringify(readiness));
  const packed = [...ofSameAddresses.values()].map((group) => subsetOf(group, records));
  return inCanonicalOrder(packed, printSubset);
}

/** Returns an upper limit for the number of addresses after repacking. */
export function repackedAddresses(subsets: readonly EndpointSubset[]): number {
  return portGroups(subsets).reduce((sum, { offeredBy }) => sum + offeredBy.flatMap(addressesIn).length, 0);
}

function portGroups(subsets: readonly EndpointSubset[]): PortGroup[] {
  const ports = new Map<unknown, { readonly port: EndpointPort | undefined; readonly at: Set<number> }>();
  for (const [index, subset] of subsets.entries()) {
    for (const port of subset.ports?.length ? subset.ports : [undefined]) {
      const known = ports.get(portKey(port)) ?? { port, at: new Set() };
      ports.set(portKey(port), known);
      known.at.add(index);
    }
  }
  const groups = Map.groupBy(ports.values(), ({ at }) => [...at].join());
  return [...groups.values()].map((group) => ({
    ports: group.map(({ port }) => port),
    offeredBy: [...(group[0]?.at ?? [])].flatMap((index) => subsets[index] ?? []),
  }));
}

function addressesIn({ addresses = [], notReadyAddresses = [] }: EndpointSubset): EndpointAddress[] {
  return [...addresses, ...notReadyAddresses];
}

function recordsIn(subsets: readonly EndpointSubset[]): ReadonlyMap<string, EndpointAddress> {
  // In a map, the last entry of a key stays. Here, that is the first record of an address.
  return new Map(
    subsets
      .flatMap(addressesIn)
      .reverse()
      .map((address) => [addressKey(address), address]),
  );
}

function readinessIn(subsets: readonly EndpointSubset[]): Readiness {
  const readiness = new Map<string, boolean>();
  for (const { addresses = [], notReadyAddresses = [] } of subsets) {
    for (const key of addresses.map(addressKey)) readiness.set(key, readiness.get(key) !== false);
    for (const key of notReadyAddresses.map(addressKey)) readiness.set(key, false);
  }
  return [...readiness].sort(byKey);
}

function subsetOf(
  offers: readonly { readonly ports: PortGroup['ports']; readonly readiness: Readiness }[],
  records: ReadonlyMap<string, EndpointAddress>,
): EndpointSubset {
  const readiness = offers[0]?.readiness ?? [];
  const those = (wanted: boolean) =>
    readiness.flatMap(([key, ready]) => (ready === wanted ? (records.get(key) ?? []) : []));
  const [addresses, notReadyAddresses] = [those(true), those(false)];
  const ports = inCanonicalOrder(
    offers.flatMap((offer) => offer.ports.filter((port) => port !== undefined)),
    printPort,
  );
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
    ...(ports.length > 0 && { ports }),
  };
}

/** Returns the key of an address: its text and the uid of its target. Keys are sorted as text. */
export function addressKey({ ip, targetRef }: EndpointAddress): string {
  return `${ip}\0${String(targetRef?.uid ?? '')}`;
}

/** Returns the key that equal ports share. Ports with an `appProtocol` are never equal: upstream compares pointers. */
function portKey(port: EndpointPort | undefined): unknown {
  if (port?.appProtocol !== undefined) return port;
  return port && JSON.stringify([port.name ?? '', port.port, port.protocol ?? '']);
}

function byKey([one]: readonly [string, boolean], [other]: readonly [string, boolean]): number {
  return one < other ? -1 : Number(one > other);
}

/** Returns ports or subsets in the order of upstream's `SortSubsets`: by the 128-bit FNV-1a hash of their printed form. */
function inCanonicalOrder<Part>(parts: readonly Part[], print: (part: Part) => string): Part[] {
  if (parts.length < 2) return [...parts];
  return parts
    .map((part) => ({ part, hash: fnv1a128(print(part)) }))
    .sort((one, other) => (one.hash < other.hash ? -1 : Number(one.hash > other.hash)))
    .map(({ part }) => part);
}

/** Prints a port as Go's spew does (`%#v`, without pointer addresses). */
function printPort(port: EndpointPort): string {
  return `(v1.EndpointPort)${portFields(port)}`;
}

function printSubset(subset: EndpointSubset): string {
  return [
    `(v1.EndpointSubset){Addresses:${printList('v1.EndpointAddress', subset.addresses, addressFields)}`,
    `NotReadyAddresses:${printList('v1.EndpointAddress', subset.notReadyAddresses, addressFields)}`,
    `Ports:${printList('v1.EndpointPort', subset.ports, portFields)}}`,
  ].join(' ');
}

function printList<Part>(type: string, parts: readonly Part[] | undefined, print: (part: Part) => string): string {
  return `([]${type})${parts === undefined ? '<nil>' : `[${parts.map(print).join(' ')}]`}`;
}

function portFields({ name, port, protocol, appProtocol }: EndpointPort): string {
  const text = `Name:(string)${name ?? ''} Port:(int32)${port} Protocol:(v1.Protocol)${protocol ?? ''}`;
  return `{${text} AppProtocol:(*string)${appProtocol ?? '<nil>'}}`;
}

function addressFields({ ip, hostname, nodeName, targetRef }: EndpointAddress): string {
  const text = `IP:(string)${ip} Hostname:(string)${hostname ?? ''} NodeName:(*string)${nodeName ?? '<nil>'}`;
  return `{${text} TargetRef:(*v1.ObjectReference)${targetRef === undefined ? '<nil>' : referenceFields(targetRef)}}`;
}

function referenceFields(reference: NonNullable<EndpointAddress['targetRef']>): string {
  const text = (field: keyof typeof reference) => String(reference[field] ?? '');
  return [
    `{Kind:(string)${text('kind')} Namespace:(string)${text('namespace')} Name:(string)${text('name')}`,
    `UID:(types.UID)${text('uid')} APIVersion:(string)${text('apiVersion')}`,
    `ResourceVersion:(string)${text('resourceVersion')} FieldPath:(string)${text('fieldPath')}}`,
  ].join(' ');
}

const FNV_OFFSET = 0x6c62272e07bb014262b821756295c58dn;
const FNV_PRIME = 0x0000000001000000000000000000013bn;

function fnv1a128(text: string): bigint {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * FNV_PRIME);
  return hash;
}
