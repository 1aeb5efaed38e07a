import type { EndpointAddress, EndpointPort, EndpointSubset } from './objects.ts';

/** One port, and the addresses that offer it: readiness by address key. No port at all is an offer too. */
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
  const ofSameAddresses = Map.groupBy(offers, ({ readiness }) => JSON.stringify([...readiness].sort(byKey)));
  const packed = [...ofSameAddresses.values()].map((group) => subsetOf(group, records));
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

/**
 * The order in which the original leaves ports and subsets after repacking (`SortSubsets` of
 * `pkg/api/v1/endpoints/util.go`): by the 128 bit FNV-1a hash of each one's printed form.
 */
function inCanonicalOrder<Part>(parts: readonly Part[], print: (part: Part) => string): Part[] {
  if (parts.length < 2) return [...parts];
  return parts
    .map((part) => ({ part, hash: fnv1a128(print(part)) }))
    .sort((one, other) => (one.hash < other.hash ? -1 : Number(one.hash > other.hash)))
    .map(({ part }) => part);
}

/** The printed forms are those of Go's spew (`%#v`, without pointer addresses). */
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
  const text = (field: string) => String(reference[field] ?? '');
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
